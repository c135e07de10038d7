"""Rotary position embedding of layer norm's and RMS norm's results, and its gradients."""

import ml_dtypes
import numpy
import pytest
import reference

import clnorm
from clnorm import _arrays


def tables(positions, pairs, dtype="f4"):
    angles = numpy.arange(positions)[:, None] * 100.0 ** (-numpy.arange(pairs) / pairs)
    return numpy.cos(angles).astype(dtype), numpy.sin(angles).astype(dtype)


def rotated(y, cos, sin, style, sign=1.0):
    """y with its first columns rotated by cos and sin, (*rows, pairs) or a shape that broadcasts to it."""
    y, cos, sin = (numpy.array(array, "f8") for array in (y, cos, sin))
    pairs = cos.shape[-1]
    index = numpy.arange(pairs)
    first, second = (index, index + pairs) if style == "neox" else (2 * index, 2 * index + 1)
    a, b = y[..., first], y[..., second]
    y[..., first], y[..., second] = a * cos - sign * b * sin, b * cos + sign * a * sin
    return y


@pytest.mark.parametrize("style", ["neox", "interleaved"])
@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float16, ml_dtypes.bfloat16, numpy.float64])
@pytest.mark.parametrize("pairs", [24, 7])
def test_forward_and_backward(rng, style, dtype, pairs):
    x, dy = rng.standard_normal((2, 3, 5, 4, 48)).astype(dtype)  # samples, tokens, heads, columns
    weight = rng.standard_normal(48).astype(dtype)
    cos, sin = tables(20, pairs, "f8" if dtype == numpy.float64 else "f4")
    position = rng.integers(0, 20, (3, 5)).astype("i4")
    rope = clnorm.Rope(cos, sin, position, style)
    by_row = cos[position][:, :, None], sin[position][:, :, None]
    y = clnorm.rms_norm(x, weight, rope=rope)
    reference.assert_close(y, rotated(reference.norm(x, weight, layer=False), *by_row, style), 48)
    gradients = clnorm.rms_norm_backward(dy, x, weight, rope=rope)
    turned = rotated(dy, *by_row, style, sign=-1.0).reshape(-1, 48)
    dx, dweight, _ = reference.norm_backward(turned, x.reshape(-1, 48), weight, layer=False)
    size = numpy.abs(turned * reference.norm(x.reshape(-1, 48), layer=False)).sum(0).max()
    reference.assert_close(gradients.dx, dx.reshape(x.shape), 48)
    reference.assert_close(gradients.dweight, dweight, 48, size)


def test_positions_by_row(rng):
    x = rng.standard_normal((5, 4, 32)).astype("f4")  # tokens, heads, columns
    cos, sin = tables(5, 16)
    y = clnorm.layer_norm(x, rope=clnorm.Rope(cos, sin, repeat=4))
    reference.assert_close(y, rotated(reference.norm(x), cos[:, None], sin[:, None], "neox"), 32)
    heads = x.reshape(5, 128)
    numpy.testing.assert_array_equal(clnorm.layer_norm(heads, group_size=32, rope=(cos, sin)).reshape(x.shape), y)
    missing = numpy.array([0, 1, 5, -1, 4], "i4")
    y = clnorm.layer_norm(x, rope=clnorm.Rope(cos, sin, missing))
    assert (numpy.isnan(y).all((1, 2)) == [False, False, True, True, False]).all()


def test_tables_and_queries_are_not_copied(rng, monkeypatch):
    monkeypatch.setattr(_arrays.Numpy, "contiguous", lambda array: pytest.fail(f"an array of {array.shape} is copied"))
    packed = rng.standard_normal((2, 5, 3, 4, 32)).astype("f4")
    before, position = packed.copy(), numpy.arange(10, dtype="i4").reshape(2, 5) % 9
    both = numpy.concatenate(tables(9, 16), -1)
    rope = clnorm.Rope(both[:, :16], both[:, 16:], position, "interleaved")
    q = packed[:, :, 0]
    assert clnorm.rms_norm(q, rope=rope, out=q) is q
    by_row = both[position][:, :, None, :16], both[position][:, :, None, 16:]
    reference.assert_close(q, rotated(reference.norm(before[:, :, 0], layer=False), *by_row, "interleaved"), 32)
    numpy.testing.assert_array_equal(packed[:, :, 1:], before[:, :, 1:])
    gradients = clnorm.rms_norm_backward(before[:, :, 1], before[:, :, 0], rope=rope, out=packed[:, :, 2])
    copies = clnorm.rms_norm_backward(before[:, :, 1].copy(), before[:, :, 0].copy(), rope=rope)
    numpy.testing.assert_array_equal(gradients.dx, copies.dx)


X = numpy.ones((4, 8), "f4")
TABLE = numpy.ones((4, 4), "f4")


@pytest.mark.parametrize("message,rope", [
    ("rope: expected a clnorm.Rope, or \\(cos, sin\\), got ndarray", TABLE),
    ("rope: expected a clnorm.Rope", (TABLE,)),
    ("rope.cos: expected a NumPy array, as x is", ([1.0], TABLE)),
    ("rope.cos: expected shape \\(positions, pairs\\) with up to 4 pairs, got \\(4, 5\\)", (numpy.ones((4, 5), "f4"),) * 2),
    ("rope.cos: expected 4 positions for 4 rows with a repeat of 1, got 3", (TABLE[:3], TABLE[:3])),
    ("rope.sin: expected the shape of rope.cos, \\(4, 4\\), got \\(4, 3\\)", (TABLE, TABLE[:, :3])),
    ("rope.position: expected dtype int32, got int64", (TABLE, TABLE, numpy.arange(4))),
    ("rope.position: expected shape \\(4,\\), or its first dimensions, got \\(3,\\)", (TABLE, TABLE, numpy.zeros(3, "i4"))),
    ("rope.style: expected one of 'neox', 'interleaved', got 'gptj'", clnorm.Rope(TABLE, TABLE, style="gptj")),
    ("rope.repeat: expected 1 with a position", clnorm.Rope(TABLE, TABLE, numpy.zeros(4, "i4"), repeat=2)),
    ("rope.repeat: expected a number of rows, got 0", clnorm.Rope(TABLE, TABLE, repeat=0)),
])
def test_what_is_refused(message, rope):
    with pytest.raises(ValueError, match=message):
        clnorm.rms_norm(X, rope=rope)


def test_other_refusals_come_from_the_library():
    for name, options in (("activation", {"activation": "silu"}), ("z", {"z": X}), ("scaling", {"dtype": "float8_e5m2"})):
        with pytest.raises(clnorm.ClnormError, match=f"^{name} is set: expected none with rope"):
            clnorm.rms_norm(X, rope=(TABLE, TABLE), **options)
    with pytest.raises(ValueError, match="x: expected a dtype of"):
        clnorm.rms_norm(X.astype("i4"))
    dy = X.copy()
    with pytest.raises(ValueError, match="^out, from byte"):
        clnorm.rms_norm_backward(dy, X, rope=(TABLE, TABLE), out=dy)
