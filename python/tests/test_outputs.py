"""Sums that are added to the caller's arrays, transposed copies of 8 bits, `out` for any dimension, batch invariance."""

import ml_dtypes
import numpy
import pytest
import reference

import clnorm
from clnorm import _call

ROWS, COLUMNS = 37, 96


def sums_of_norm(dy, x, layer):
    """dweight and dbias, and the sums of the magnitudes of their terms."""
    _, dweight, dbias = reference.norm_backward(dy, x, layer=layer)
    x_hat = reference.norm(x, layer=layer)
    return (dweight, dbias), (numpy.abs(numpy.asarray(dy, "f8") * x_hat).sum(0).max(), numpy.abs(dy).sum(0).max())


@pytest.mark.parametrize("layer", [True, False])
@pytest.mark.parametrize("dtype,sums", [("float32", "float32"), (ml_dtypes.bfloat16, "float32"), ("float64", "float64"),
                                        ("float16", "bfloat16")])
def test_sums_are_added_to_the_array(rng, layer, dtype, sums):
    dy, x = rng.standard_normal((2, ROWS, COLUMNS)).astype(dtype)
    weight, bias = numpy.ones((2, COLUMNS), dtype)
    whole = rng.standard_normal((2, COLUMNS + 8)).astype(ml_dtypes.bfloat16 if sums == "bfloat16" else sums)
    before = whole.copy()
    dweight, dbias = whole[:, 3:-5]
    backward = clnorm.layer_norm_backward if layer else clnorm.rms_norm_backward
    out = backward(dy, x, weight, bias, dweight=dweight, dbias=dbias)
    assert out.dweight is dweight and out.dbias is dbias
    exact, sizes = sums_of_norm(numpy.asarray(dy, "f8"), numpy.asarray(x, "f8"), layer)
    for got, old, new, size in zip((dweight, dbias), before[:, 3:-5], exact, sizes):
        reference.assert_close(got, numpy.asarray(old, "f8") + new, COLUMNS, size)
    for part in (slice(0, 3), slice(-5, None)):
        numpy.testing.assert_array_equal(whole[:, part], before[:, part])
    numpy.testing.assert_array_equal(out.dx, backward(dy, x, weight, bias).dx)


def test_sums_of_weights_by_row_and_without_rows(rng):
    dy, x = rng.standard_normal((2, 6, 2, 16)).astype("f4")
    weight, sums = numpy.ones((2, 16), "f4"), numpy.zeros((2, 40), "f4")
    once = clnorm.rms_norm_backward(dy, x, weight, weight_repeat=1, dweight=sums[:, 8:24])
    twice = clnorm.rms_norm_backward(dy, x, weight, weight_repeat=1, needs=["dweight"], dweight=sums[:, 8:24])
    assert once.dx is not None and twice.dx is None
    x_hat = reference.norm(x, layer=False)
    reference.assert_close(sums[:, 8:24], 2 * (dy * x_hat).sum(0), 16, numpy.abs(dy * x_hat).sum(0).max())
    assert not sums[:, :8].any() and not sums[:, 24:].any()
    kept = sums.copy()
    clnorm.rms_norm_backward(dy[:0], x[:0], weight, weight_repeat=1, dweight=sums[:, 8:24])
    numpy.testing.assert_array_equal(sums, kept)


@pytest.mark.parametrize("channels_last", [False, True])
def test_sums_of_group_norm(rng, channels_last):
    dy, x = rng.standard_normal((2, 3, 7, 8)).astype("f4")
    if not channels_last:
        dy, x = (numpy.ascontiguousarray(numpy.moveaxis(array, -1, 1)) for array in (dy, x))
    weight, bias = numpy.ones((2, 8), ml_dtypes.bfloat16)
    dweight, dbias = rng.standard_normal((2, 8)).astype("f4")
    before = dweight.copy(), dbias.copy()
    out = clnorm.group_norm_backward(dy, x, 2, weight, bias, channels_last=channels_last, dweight=dweight, dbias=dbias)
    assert out.dweight is dweight and out.dbias is dbias
    if not channels_last:
        dy, x = numpy.moveaxis(dy, 1, -1), numpy.moveaxis(x, 1, -1)
    grouped = x.reshape(3, 7, 2, 4).swapaxes(1, 2).reshape(3, 2, 28)
    x_hat = reference.norm(grouped).reshape(3, 2, 7, 4).swapaxes(1, 2).reshape(x.shape)
    for got, old, terms in zip((dweight, dbias), before, (dy * x_hat, numpy.asarray(dy, "f8"))):
        reference.assert_close(got, old + terms.sum((0, 1)), 28, numpy.abs(terms).sum((0, 1)).max())


X = numpy.ones((4, 32), "f4")
W = numpy.ones(32, "f4")


@pytest.mark.parametrize("message,call", [
    ("dbias: expected an array to add to, as dweight is given",
     lambda: clnorm.layer_norm_backward(X, X, W, W, dweight=W.copy())),
    ("dbias: expected an array to add to", lambda: clnorm.group_norm_backward(X, X, 2, W, W, dweight=W.copy())),
    ("dweight: expected None where no such gradient", lambda: clnorm.layer_norm_backward(X, X, dweight=W.copy())),
    ("dweight: expected None where no such gradient",
     lambda: clnorm.layer_norm_backward(X, X, W, needs=["dx"], dweight=W.copy())),
    ("out: expected None, as dweight is where the first gradient goes",
     lambda: clnorm.rms_norm_backward(X, X, W, needs=["dweight"], dweight=W.copy(), out=W.copy())),
    (r"dweight: expected shape \(32,\) and dtype float32 or float16 or bfloat16 or float64, got \(31,\)",
     lambda: clnorm.rms_norm_backward(X, X, W, dweight=W[1:].copy())),
    ("dweight: expected shape .* and dtype float32 or float64, got .* and float16",
     lambda: clnorm.rms_norm_backward(X.astype("f8"), X.astype("f8"), W, dweight=W.astype("f2"))),
    ("dweight: expected shape .*, got .* and float64",
     lambda: clnorm.group_norm_backward(X, X, 2, W, dweight=W.astype("f8"))),
    ("dweight: expected a NumPy array", lambda: clnorm.rms_norm_backward(X, X, W, dweight=[0.0] * 32)),
    ("dweight, from byte 0 of a buffer, overlaps weight", lambda: clnorm.rms_norm_backward(X, X, W, dweight=W)),
    ("y_transposed: expected False where y is not of", lambda: clnorm.rms_norm(X, y_transposed=True)),
    (r"out: expected shape \(4, 32\) and dtype float32, got \(2, 32\)", lambda: clnorm.softmax(X, 0, out=X[:2])),
    ("out: expected a NumPy array, as the input is, got .*list", lambda: clnorm.softmax(X, 0, out=[1.0])),
    ("out: expected an array that can be written", lambda: clnorm.softmax(X, 0, out=numpy.broadcast_to(W, (4, 32)))),
])
def test_what_is_refused(message, call):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


@pytest.mark.parametrize("scaling", [{"scaling": "tensor"}, {"scaling": "row"}, {"scaling": "group", "scale_group": 32},
                                     {"scale": 0.02}])
@pytest.mark.parametrize("shape", [(5, 7, 96), (64, 128)])
def test_transposed_copies(rng, scaling, shape):
    x = rng.standard_normal(shape).astype("f4")
    out = clnorm.rms_norm(x, dtype="float8_e4m3fn", y_transposed=True, save_stats=True, **scaling)
    alone = clnorm.rms_norm(x, dtype="float8_e4m3fn", **scaling)
    assert out.y_transposed.shape == (shape[-1], x.size // shape[-1]) and alone.y_transposed is None
    as_bytes = [array.view("u1") for array in (out.y, alone.y, out.y_transposed)]
    numpy.testing.assert_array_equal(as_bytes[0], as_bytes[1])
    numpy.testing.assert_array_equal(as_bytes[2], as_bytes[0].reshape(-1, shape[-1]).T)
    numpy.testing.assert_array_equal(out.scale, alone.scale)
    reference.assert_close(out.rstd, 1 / numpy.sqrt((numpy.asarray(x, "f8") ** 2).mean(-1) + 1e-5), shape[-1])
    both = clnorm.quantize(x, transposed=True, **scaling)
    numpy.testing.assert_array_equal(both.q_transposed.view("u1"), both.q.view("u1").reshape(-1, shape[-1]).T)
    for got, expected in zip(both, clnorm.quantize(x, **scaling)):
        numpy.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_over_any_dimension_writes_to_out(rng, dim):
    x, dy = rng.standard_normal((2, 3, 40, 5)).astype("f4")
    y = clnorm.softmax(x, dim)
    out = numpy.zeros_like(x)
    assert clnorm.softmax(x, dim, out=out) is out
    numpy.testing.assert_array_equal(out, y)
    dx = clnorm.softmax_backward(dy, y, dim)
    assert clnorm.softmax_backward(dy, y, dim, out=dy) is dy
    numpy.testing.assert_array_equal(dy, dx)


def test_softmax_over_any_dimension_writes_to_a_mapped_file(rng, tmp_path):
    x = rng.standard_normal((4, 8)).astype("f4")
    out = numpy.memmap(tmp_path / "out", "f4", "w+", shape=x.shape)
    for dim in (0, 1):
        assert clnorm.softmax(x, dim, out=out) is out
        numpy.testing.assert_array_equal(out, clnorm.softmax(x, dim))


FUNCTIONS = {
    "layer_norm": lambda x, on: clnorm.layer_norm(x, batch_invariant=on),
    "rms_norm": lambda x, on: clnorm.rms_norm(x, residual=x, batch_invariant=on).y,
    "layer_norm_backward": lambda x, on: clnorm.layer_norm_backward(x[:, ::-1].copy(), x, batch_invariant=on).dx,
    "softmax": lambda x, on: clnorm.softmax(x, batch_invariant=on),
    "softmax_backward": lambda x, on: clnorm.softmax_backward(x[:, ::-1].copy(), x, batch_invariant=on),
    "l2_norm": lambda x, on: clnorm.l2_norm(x, batch_invariant=on),
    "l2_norm_backward": lambda x, on: clnorm.l2_norm_backward(x[:, ::-1].copy(), x, batch_invariant=on).dx,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batch_invariance_reaches_the_descriptor(name):
    _call._records.clear()
    for on in (True, False):
        FUNCTIONS[name](X, on)
        assert list(_call._records.values())[-1].kept[0].batch_invariant == on


def test_a_row_has_the_same_bits_for_any_number_of_rows(rng):
    x = rng.standard_normal((8, 1 << 17)).astype("f4")
    alone = clnorm.layer_norm(x[:1], batch_invariant=True)
    for rows in (2, 8):
        numpy.testing.assert_array_equal(clnorm.layer_norm(x[:rows], batch_invariant=True)[:1], alone)
    reference.assert_close(alone, reference.norm(x[:1]), x.shape[-1])


def test_a_tensor_without_elements_overlaps_nothing():
    buffer = numpy.ones(12, "f4")
    x, dweight = buffer[4:8].reshape(1, 4)[:0], buffer[2:6]
    clnorm.rms_norm_backward(x, x, numpy.ones(4, "f4"), dweight=dweight)
    assert (dweight == 1).all()  # to which nothing was added
