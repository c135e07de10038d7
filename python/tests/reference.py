"""Operations in float64, and the error that a result may have."""

import math

import numpy

# Half a step at 1 of each dtype: the rounding of a result.
ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-53}


def assert_close(got, expected, columns=1, condition=0.0):
    """The error is within the rounding of the result, and of the sums over `columns` elements before it: 16 roundings of
    the arithmetic, and one more for each doubling of the columns, of a number as large as the largest result. condition:
    the size of other numbers with at most 4 roundings that reach the result."""
    dtype = got.dtype.name
    got, expected = numpy.asarray(got, "f8"), numpy.asarray(expected, "f8")
    assert got.shape == expected.shape
    arithmetic = 2.0 ** (-53 if dtype == "float64" else -24)
    largest = numpy.abs(expected).max(initial=1.0)
    summed = (16 + math.log2(columns)) * largest + 4 * condition
    allowed = ROUNDING[dtype] * numpy.abs(expected) + arithmetic * summed
    assert (numpy.abs(got - expected) <= allowed).all(), numpy.abs(got - expected).max()


def norm(x, weight=1.0, bias=0.0, eps=1e-5, layer=True):
    x = numpy.asarray(x, "f8")
    centred = x - x.mean(-1, keepdims=True) if layer else x
    return centred / numpy.sqrt((centred**2).mean(-1, keepdims=True) + eps) * numpy.asarray(weight, "f8") + bias


def norm_condition(x, eps=1e-5):
    """The largest element times rstd of each row: the factor from the relative rounding of a mean to the error of x_hat."""
    x = numpy.asarray(x, "f8")
    return numpy.abs(x).max(-1, keepdims=True) / numpy.sqrt(x.var(-1, keepdims=True) + eps)


def norm_backward(dy, x, weight=1.0, eps=1e-5, layer=True):
    """(dx, dweight, dbias) of rows [rows, columns]."""
    dy, x = numpy.asarray(dy, "f8"), numpy.asarray(x, "f8")
    centred = x - x.mean(-1, keepdims=True) if layer else x
    rstd = 1 / numpy.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    x_hat, wdy = centred * rstd, dy * numpy.asarray(weight, "f8")
    dx = wdy - x_hat * (x_hat * wdy).mean(-1, keepdims=True) - (wdy.mean(-1, keepdims=True) if layer else 0)
    return dx * rstd, (dy * x_hat).sum(0), dy.sum(0)


def silu(x):
    return x / (1 + numpy.exp(-x))


def softmax(x, axis=-1):
    e = numpy.exp(numpy.asarray(x, "f8") - numpy.asarray(x, "f8").max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def gelu(x):
    x = numpy.asarray(x, "f8")
    return x * 0.5 * (1 + numpy.vectorize(math.erf)(x / math.sqrt(2)))
