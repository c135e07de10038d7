"""Norms of rows whose columns are distributed over processes."""

import ml_dtypes
import numpy
import pytest
import reference

import clnorm

CUTS = [0, 40, 41, 128]


def read_only(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def slices(array):
    return [array[..., low:high] for low, high in zip(CUTS, CUTS[1:])]


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float16, ml_dtypes.bfloat16, numpy.float64])
@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
def test_slices_together_are_the_norm(rng, norm, dtype):
    x, dy = (rng.standard_normal((2, 3, 5, 128)) + 1).astype(dtype)
    weight, bias = rng.standard_normal((2, 128)).astype(dtype)
    parts = list(zip(slices(x), slices(dy), slices(weight), slices(bias)))
    moments = [clnorm.norm_statistics(part[0], norm=norm) for part in parts]
    for others in moments[1:]:
        clnorm.moments_merge(moments[0], others)
    whole, layer = moments[0], norm == "layer_norm"
    assert whole.shape == (3, 5, 3) and (whole[..., 2] == 128).all()
    y = numpy.concatenate([clnorm.norm_apply(a, whole, w, b, norm=norm) for a, _, w, b in parts], -1)
    reference.assert_close(y, reference.norm(x, weight, numpy.asarray(bias, "f8"), layer=layer), 128)
    sums = sum(clnorm.norm_backward_statistics(d, a, whole, w, norm=norm) for a, d, w, _ in parts)
    gradients = [clnorm.norm_backward_apply(d, a, whole, sums, w, norm=norm) for a, d, w, _ in parts]
    expected = reference.norm_backward(dy.reshape(15, 128), x.reshape(15, 128), weight, layer=layer)
    sizes = [0, *(numpy.abs(numpy.asarray(dy, "f8").reshape(15, 128) * n).sum(0).max()
                  for n in (reference.norm(x.reshape(15, 128), layer=layer), 1))]
    for name, wanted, size in zip(("dx", "dweight", "dbias"), expected, sizes):
        got = numpy.concatenate([getattr(gradient, name) for gradient in gradients], -1)
        reference.assert_close(got.reshape(wanted.shape), wanted, 128, size)


def test_segments_and_outputs(rng):
    x = rng.standard_normal((4, 96)).astype("f4")
    moments = clnorm.norm_statistics(x, group_size=32)
    assert moments.shape == (3, 4, 3)
    y = clnorm.norm_apply(x, moments, group_size=32, out=x.copy())
    reference.assert_close(y, reference.norm(x.reshape(4, 3, 32)).reshape(4, 96), 32)


def test_merged_moments_may_be_read_only():
    into, others = numpy.ones((4, 3)), read_only(numpy.full((4, 3), 2.0))
    clnorm.moments_merge(into, others)
    assert (into[:, 2] == 3).all()


def test_neighbouring_moments_are_merged():
    both = numpy.ones((4, 3))
    clnorm.moments_merge(both[:2], both[2:])
    assert both[:, 2].tolist() == [2, 2, 1, 1]


X, MOMENTS = numpy.ones((4, 8), "f4"), numpy.ones((5, 3), "f4")


@pytest.mark.parametrize("message,call", [
    ("norm: expected one of 'layer_norm', 'rms_norm', got 'l2'", lambda: clnorm.norm_statistics(X, norm="l2")),
    (r"moments: expected shape \(4, 3\) and dtype float32, got \(3, 3\)", lambda: clnorm.norm_apply(X, X[:3, :3].copy())),
    (r"sums: expected shape \(4, 2\) and dtype float32, got \(4, 3\)",
     lambda: clnorm.norm_backward_apply(X, X, X[:, :3].copy(), X[:, :3].copy())),
    ("into: expected float32 or float64 of shape", lambda: clnorm.moments_merge(X, X)),
    (r"others: expected shape \(4, 3\)", lambda: clnorm.moments_merge(X[:, :3].copy(), X[:3, :3].copy())),
    ("weight: expected shape", lambda: clnorm.norm_apply(X, clnorm.norm_statistics(X), X[0, :3])),
    ("into: expected a NumPy array or torch tensor, got .*list",
     lambda: clnorm.moments_merge([[1.0, 2.0, 3.0]], X[:1, :3])),
    ("into: expected an array that can be written", lambda: clnorm.moments_merge(read_only(X[:, :3]), X[:, :3].copy())),
    ("others: expected memory that does not overlap into", lambda: clnorm.moments_merge(MOMENTS[1:], MOMENTS[:-1])),
    ("others: expected memory that does not overlap into", lambda: clnorm.moments_merge(MOMENTS, MOMENTS)),
    ("others: expected a contiguous array", lambda: clnorm.moments_merge(X[:, :3].copy(), X[:, :3])),
])
def test_what_is_refused(message, call):
    with pytest.raises(ValueError, match=message):
        call()
