"""NumPy arrays: values, dtypes, strides, outputs, what is refused."""

import ml_dtypes
import numpy
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import clnorm

DTYPES = [numpy.float32, numpy.float16, ml_dtypes.bfloat16, numpy.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layer", [True, False])
def test_norm_and_gradients(rng, dtype, layer):
    x, dy = rng.standard_normal((2, 5, 3, 96)).astype(dtype)
    weight, bias = rng.standard_normal((2, 96)).astype(dtype)
    name = "layer_norm" if layer else "rms_norm"
    forward, backward = getattr(clnorm, name), getattr(clnorm, name + "_backward")
    y = forward(x, weight, bias)
    assert y.dtype == x.dtype and y.shape == x.shape
    reference.assert_close(y, reference.norm(x, weight, numpy.asarray(bias, "f8"), layer=layer), 96)
    gradients = backward(dy, x, weight, bias)
    expected = reference.norm_backward(dy.reshape(15, 96), x.reshape(15, 96), weight, layer=layer)
    reference.assert_close(gradients.dx, expected[0].reshape(x.shape), 96)
    reference.assert_close(gradients.dweight, expected[1], 96)
    reference.assert_close(gradients.dbias, expected[2], 96)
    assert gradients.dz is None and gradients.dresidual is None


@pytest.mark.parametrize("dtype,of_weights", [*((dtype, "f8") for dtype in DTYPES[:3]), ("f8", "f4")])
@pytest.mark.parametrize("layer", [True, False])
def test_weights_of_another_precision(rng, dtype, of_weights, layer):
    dy, x = rng.standard_normal((2, 15, 97)).astype(dtype)
    weight, bias = rng.standard_normal((2, 97)).astype(of_weights)
    sums = rng.standard_normal((2, 97)).astype(of_weights)
    before = sums.copy()
    name = "layer_norm" if layer else "rms_norm"
    forward, backward = getattr(clnorm, name), getattr(clnorm, name + "_backward")
    y = forward(x, weight, bias)
    assert y.dtype == x.dtype
    reference.assert_close(y, reference.norm(x, weight, numpy.asarray(bias, "f8"), layer=layer), 97)
    gradients = backward(dy, x, weight, bias)
    dx, *expected = reference.norm_backward(dy, x, weight, layer=layer)
    reference.assert_close(gradients.dx, dx, 97)
    backward(dy, x, weight, bias, dweight=sums[0], dbias=sums[1])
    for got, total, old, exact in zip(gradients[1:3], sums, before, expected):
        assert got.dtype == of_weights
        reference.assert_close(got.astype("f4"), exact, 97)  # in float64, too, they are sums in float32
        reference.assert_close(total.astype("f4"), old + exact, 97)


def test_residual_gate_activation_and_statistics(rng):
    x, residual, z = rng.standard_normal((3, 7, 128)).astype("f4")
    out = clnorm.rms_norm(x, residual=residual, z=z, activation="silu", save_stats=True)
    s = x + residual
    numpy.testing.assert_array_equal(out.residual_out, s)
    n = reference.silu(reference.norm(s, layer=False))
    reference.assert_close(out.y, n * reference.silu(numpy.asarray(z, "f8")), 128)
    reference.assert_close(out.rstd, 1 / numpy.sqrt((numpy.asarray(s, "f8") ** 2).mean(-1) + 1e-5), 128)
    assert out.mean is None and out.rstd.shape == (7,)


def test_gradients_of_a_residual_are_those_of_the_sum(rng):
    x, residual, dy, from_above = rng.standard_normal((4, 6, 64)).astype("f4")
    s = clnorm.rms_norm(x, residual=residual).residual_out
    gradients = clnorm.rms_norm_backward(dy, s, x_is_sum=True, dresidual_out=from_above)
    dx, _, _ = reference.norm_backward(dy, s, layer=False)
    reference.assert_close(gradients.dx, dx + from_above, 64)
    numpy.testing.assert_array_equal(gradients.dx, gradients.dresidual)


def test_dropout_keeps_a_part_and_the_backward_has_its_mask(rng):
    x, residual = numpy.ones((64, 256), "f4"), numpy.zeros((64, 256), "f4")
    s = clnorm.rms_norm(x, residual=residual, dropout=0.25, seed=(3, 4)).residual_out
    assert set(numpy.unique(s)) == {0, numpy.float32(1 / 0.75)}
    assert abs((s == 0).mean() - 0.25) < 6 * numpy.sqrt(0.25 * 0.75 / s.size)
    gradients = clnorm.rms_norm_backward(x, s, x_is_sum=True, dropout=0.25, seed=(3, 4))
    numpy.testing.assert_array_equal(gradients.dx[s == 0], 0)
    other = clnorm.rms_norm(x, residual=residual, dropout=0.25, seed=(3, 5)).residual_out
    assert (other != s).any()


def test_groups_normalise_segments(rng):
    x = rng.standard_normal((4, 128)).astype("f4")
    y = clnorm.rms_norm(x, group_size=32)
    reference.assert_close(y, reference.norm(x.reshape(4, 4, 32), layer=False).reshape(4, 128), 32)
    assert clnorm.rms_norm(x, group_size=32, save_stats=True).rstd.shape == (4, 4)


@pytest.mark.parametrize("heads, repeat", [(True, 1), (False, 7)])
def test_rows_share_weights(rng, heads, repeat):
    """By head, x [samples, tokens, heads, columns]; by sample, scale and shift as halves of one array."""
    x, dy = rng.standard_normal((2, 3, 7, 4, 48) if heads else (2, 3, 7, 48)).astype("f4")
    halves = rng.standard_normal((4 if heads else 3, 96)).astype("f4")
    weight, bias = halves[:, :48], halves[:, 48:]
    by_row = [w if heads else w[:, None] for w in (weight, bias)]  # as they broadcast
    y = clnorm.layer_norm(x, weight, bias, weight_offset=1, weight_repeat=repeat)
    reference.assert_close(y, reference.norm(x, by_row[0] + numpy.float32(1), numpy.asarray(by_row[1], "f8")), 48)
    gradients = clnorm.rms_norm_backward(dy, x, weight, bias, weight_repeat=repeat)
    x_hat = reference.norm(x, layer=False)
    others = (0, 1) if heads else 1
    dweight, dbias = (dy * x_hat).sum(others), numpy.asarray(dy, "f8").sum(others)
    dx, _, _ = reference.norm_backward(dy, x, by_row[0], layer=False)
    reference.assert_close(gradients.dx, dx, 48)
    reference.assert_close(gradients.dweight, dweight, 48, numpy.abs(dy * x_hat).sum(others).max())
    reference.assert_close(gradients.dbias, dbias, 48, numpy.abs(dy).sum(others).max())


def test_weights_that_rows_cannot_share_are_refused(rng):
    x, weight = numpy.zeros((6, 8), "f4"), numpy.zeros((2, 8), "f4")
    with pytest.raises(ValueError, match="weight_repeat: expected a number that, times 2 rows of weights, divides 6 rows"):
        clnorm.rms_norm(x, weight, weight_repeat=2)
    with pytest.raises(ValueError, match=r"weight_repeat: expected a weight or bias of \(weight_rows, 8\)"):
        clnorm.rms_norm(x, weight_repeat=1)
    with pytest.raises(ValueError, match=r"bias: expected shape \(2, 8\), got \(3, 8\)"):
        clnorm.rms_norm(x, weight, numpy.zeros((3, 8), "f4"), weight_repeat=1)


@pytest.mark.parametrize("channels_last", [False, True])
def test_group_norm(rng, channels_last):
    x, weight, bias = rng.standard_normal((3, 8, 5, 4)).astype("f4"), *rng.standard_normal((2, 8)).astype("f4")
    x_hat = reference.norm(x.reshape(3, 2, -1)).reshape(x.shape)
    expected = x_hat * weight[:, None, None] + bias[:, None, None]
    x = numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1)) if channels_last else x
    out = clnorm.group_norm(x, 2, weight, bias, channels_last=channels_last, save_stats=True)
    reference.assert_close(numpy.moveaxis(out.y, -1, 1) if channels_last else out.y, expected, 80)
    assert out.mean.shape == out.rstd.shape == (3, 2)
    gradients = clnorm.group_norm_backward(
        numpy.ones_like(x), x, 2, weight, bias, mean=out.mean, rstd=out.rstd, channels_last=channels_last
    )
    reference.assert_close(gradients.dweight, x_hat.sum((0, 2, 3)), 60)
    numpy.testing.assert_array_equal(gradients.dbias, 60)
    with pytest.raises(ValueError, match="num_groups: expected a divisor of the 8 channels"):
        clnorm.group_norm(x, 3, channels_last=channels_last)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("scaling, scales", [("tensor", (1,)), ("row", (3,))])
def test_group_norm_to_and_from_8_bits(rng, channels_last, scaling, scales):
    x, dy = rng.standard_normal((2, 3, 8, 6, 8)).astype("f4")
    exact = clnorm.group_norm(x, 2, channels_last=channels_last)
    out = clnorm.group_norm(x, 2, dtype="float8_e4m3fn", scaling=scaling, channels_last=channels_last, save_stats=True)
    assert out.y.dtype.name == "float8_e4m3fn" and out.scale.shape == scales and out.mean.shape == (3, 2)
    step = out.scale.reshape(-1, 1, 1, 1)
    read = numpy.asarray(out.y, "f4") * step
    assert (numpy.abs(read - exact) <= 2.0**-4 * numpy.abs(exact) + 2.0**-9 * step).all()
    again = clnorm.group_norm(out.y, 2, x_scale=out.scale, dtype="float32", channels_last=channels_last).y
    reference.assert_close(again, clnorm.group_norm(read.astype("f8"), 2, channels_last=channels_last), 192)
    gradients = clnorm.group_norm_backward(dy, out.y, 2, x_scale=out.scale, channels_last=channels_last)
    expected = clnorm.group_norm_backward(dy.astype("f8"), read.astype("f8"), 2, channels_last=channels_last)
    assert gradients.dx.dtype == "f4"
    reference.assert_close(gradients.dx, expected.dx, 192, numpy.abs(expected.dx).max())
    with pytest.raises(ValueError, match="x_scale: expected the scales of x"):
        clnorm.group_norm(out.y, 2)


def test_gradients_of_group_norm_with_a_residual(rng):
    x, residual, dy, from_above = rng.standard_normal((4, 2, 6, 10)).astype("f4")
    s = clnorm.group_norm(x, 3, residual=residual).residual_out
    got = clnorm.group_norm_backward(dy, s, 3, dresidual_out=from_above).dx
    expected = numpy.asarray(clnorm.group_norm_backward(dy, s, 3).dx, "f8") + from_above
    reference.assert_close(got, expected, 20)
    with pytest.raises(ValueError, match="dresidual_out: expected the shape of x"):
        clnorm.group_norm_backward(dy, s, 3, dresidual_out=from_above[:1])


def test_softmax_over_any_dimension(rng):
    x = rng.standard_normal((3, 40, 5)).astype("f4")
    for dim in (-1, 0, 1):
        y = clnorm.softmax(x, dim)
        reference.assert_close(y, reference.softmax(x, dim), 40)
        dy = rng.standard_normal(x.shape).astype("f4")
        exact = numpy.asarray(y, "f8") * (dy - (numpy.asarray(y, "f8") * dy).sum(dim, keepdims=True))
        reference.assert_close(clnorm.softmax_backward(dy, y, dim), exact, 40)
    x[0] = -numpy.inf
    assert (clnorm.softmax(x)[0] == 0).all()


@pytest.mark.parametrize("shape", [(), (7,), (0, 4), (3, 5), (4, 300)])
def test_gelu(rng, shape):
    x = rng.standard_normal(shape).astype("f4")
    if shape == ():
        with pytest.raises(ValueError, match="dim: expected a dimension"):
            clnorm.softmax(numpy.array(1.0, "f4"))
        x = numpy.array(0.5, "f4")
    reference.assert_close(clnorm.gelu(x), reference.gelu(x) if x.size else x)


def test_l2_norm(rng):
    x, weight = rng.standard_normal((6, 48)).astype("f4"), rng.standard_normal(48).astype("f4")
    length = numpy.sqrt((numpy.asarray(x, "f8") ** 2).sum(-1))
    out = clnorm.l2_norm(x, weight, save_norm=True)
    reference.assert_close(out.y, x / length[:, None] * numpy.asarray(weight, "f8"), 48)
    reference.assert_close(out.norm, length, 48)
    gradients = clnorm.l2_norm_backward(x, x)
    assert gradients.dweight is None and numpy.abs(gradients.dx).max() < 1e-5  # x itself: along it nothing changes
    weights = rng.standard_normal((3, 48)).astype("f4")
    by_row = numpy.asarray(weights, "f8")[[0, 1, 2, 0, 1, 2]]
    reference.assert_close(clnorm.l2_norm(x, weights, weight_repeat=1), x / length[:, None] * by_row, 48)
    dweight = clnorm.l2_norm_backward(x, x, weights, weight_repeat=1).dweight
    terms = numpy.asarray(x, "f8") ** 2 / length[:, None]
    reference.assert_close(dweight, terms.reshape(2, 3, 48).sum(0), 48)
    with pytest.raises(ValueError, match="weight_repeat: expected a number that, times 3 rows of weights, divides 6 rows"):
        clnorm.l2_norm(x, weights, weight_repeat=4)


@pytest.mark.parametrize("dtype,largest,step", [("float8_e4m3fn", 448, 2.0**-4), ("float8_e5m2", 57344, 2.0**-3)])
@pytest.mark.parametrize("scaling,group", [("tensor", 0), ("row", 0), ("group", 32)])
def test_quantize_and_back(rng, dtype, largest, step, scaling, group):
    x = rng.standard_normal((8, 80)).astype("f4")
    q, scale = clnorm.quantize(x, dtype, scaling=scaling, scale_group=group)
    assert q.dtype.name == dtype
    assert scale.shape == {"tensor": (1,), "row": (8,), "group": (8, 3)}[scaling]
    if scaling == "tensor":
        assert scale[0] == numpy.float32((numpy.abs(x).max() + 1e-10) / largest)
    back = clnorm.dequantize(q, scale, scale_group=group)
    smallest = 2.0 ** (-9 if dtype == "float8_e4m3fn" else -16) * scale.max()
    assert (numpy.abs(back - x) <= step * numpy.abs(x) + smallest).all()


def test_a_given_scale_is_one_that_dequantize_takes(rng):
    x = rng.standard_normal((8, 80)).astype("f4")
    out = clnorm.quantize(x, scale=0.01)
    assert out.scale.shape == (1,) and out.scale.dtype == "f4" and out.scale[0] == numpy.float32(0.01)
    numpy.testing.assert_array_equal(clnorm.dequantize(*out), numpy.asarray(out.q, "f4") * numpy.float32(0.01))
    assert (numpy.abs(clnorm.dequantize(*out) - x) <= 2.0**-4 * numpy.abs(x) + 2.0**-9 * 0.01).all()
    y = clnorm.rms_norm(x, dtype="float8_e4m3fn", scale=0.02)
    read = clnorm.dequantize(y.y, y.scale)
    reference.assert_close(clnorm.rms_norm(y.y, x_scale=y.scale, dtype="float32").y, reference.norm(read, layer=False), 80)
    image = clnorm.group_norm(x, 4, dtype="float8_e5m2", scale=0.5, save_stats=True)
    assert image.mean.shape == (8, 4) and image.scale == numpy.float32(0.5)


def test_a_result_of_8_bits_comes_with_its_scale(rng):
    q, scale = clnorm.quantize(rng.standard_normal((8, 64)).astype("f4"))
    for out in (clnorm.rms_norm(q, x_scale=scale), clnorm.group_norm(q, 4, x_scale=scale)):
        assert out.y.dtype == q.dtype and out.scale.shape == (1,)


def test_norm_to_and_from_8_bits(rng):
    x = rng.standard_normal((8, 128)).astype("f4")
    out = clnorm.rms_norm(x, dtype="float8_e4m3fn", scaling="row")
    assert out.y.dtype.name == "float8_e4m3fn" and out.scale.shape == (8,)
    exact = reference.norm(x, layer=False)
    read = numpy.asarray(out.y, "f4") * out.scale[:, None]
    assert (numpy.abs(read - exact) <= 2.0**-4 * numpy.abs(exact) + 2.0**-9 * out.scale[:, None]).all()
    again = clnorm.rms_norm(out.y, x_scale=out.scale, dtype="float32").y
    reference.assert_close(again, reference.norm(read, layer=False), 128)


def test_rows_at_a_distance_are_read_and_written_where_they_are(rng):
    whole = rng.standard_normal((6, 256)).astype("f4")
    before = whole.copy()
    y = clnorm.layer_norm(whole[:, :100], out=whole[:, 128:228])
    assert numpy.shares_memory(y, whole)
    reference.assert_close(y, reference.norm(before[:, :100]), 100)
    numpy.testing.assert_array_equal(whole[:, :128], before[:, :128])
    numpy.testing.assert_array_equal(whole[:, 228:], before[:, 228:])
    for view in (before[:, ::2], before[::-1], before.T, numpy.broadcast_to(before[0], (3, 256)), before.astype(">f4")):
        reference.assert_close(clnorm.layer_norm(view), reference.norm(view), 256)


def test_parts_of_a_packed_array_are_normalised_in_place(rng):
    packed = rng.standard_normal((2, 5, 3, 4, 37)).astype("f4")
    before = packed.copy()
    q, k = packed[:, :, 0], packed[:, :, 1]
    assert clnorm.rms_norm(q, out=q) is q
    clnorm.rms_norm(before[:, :, 1], out=k)
    for part in range(2):
        reference.assert_close(packed[:, :, part], reference.norm(before[:, :, part], layer=False), 37)
    numpy.testing.assert_array_equal(packed[:, :, 2], before[:, :, 2])
    gradients = clnorm.rms_norm_backward(q, before[:, :, 0], out=q)
    dx, _, _ = reference.norm_backward(
        reference.norm(before[:, :, 0], layer=False).reshape(-1, 37), before[:, :, 0].reshape(-1, 37), layer=False)
    reference.assert_close(gradients.dx.reshape(-1, 37), dx, 37)
    with pytest.raises((ValueError, clnorm.ClnormError), match="overlap"):
        clnorm.rms_norm(packed[:, :4, 0], out=packed[:, 1:, 0])


def test_turned_and_broadcast_views_are_read_where_they_are(rng):
    x = rng.standard_normal((2, 4, 5, 16)).astype("f4")
    turned, out = x.transpose(0, 2, 1, 3), numpy.zeros((2, 4, 5, 16), "f4").transpose(0, 2, 1, 3)
    residual = numpy.broadcast_to(rng.standard_normal((1, 5, 1, 16)).astype("f4"), turned.shape)
    assert clnorm.layer_norm(turned, out=out) is out
    reference.assert_close(out, reference.norm(turned), 16)
    sums = clnorm.layer_norm(turned, residual=residual)
    numpy.testing.assert_array_equal(sums.residual_out, turned + residual)
    for name in ("softmax", "gelu", "l2_norm"):
        function = getattr(clnorm, name)
        numpy.testing.assert_array_equal(function(turned), function(turned.copy()))
    with pytest.raises(ValueError, match="out: expected the normalised dimensions innermost and dense"):
        clnorm.layer_norm(x[0, 0], out=numpy.zeros((16, 5), "f4").T)
    with pytest.raises(ValueError, match="out: expected the normalised dimensions innermost"):
        clnorm.layer_norm(x[0, 0], out=numpy.lib.stride_tricks.as_strided(x, (5, 16), (8, 4)))


def test_sums_over_rows_are_written_where_they_may_be(rng):
    x, dy, weight, whole = *rng.standard_normal((2, 4, 8)).astype("f4"), numpy.ones(8, "f4"), numpy.zeros((8, 5), "f4")
    with pytest.raises(ValueError, match="out: expected rows that lie one after the other"):
        clnorm.layer_norm_backward(dy, x, weight, needs=["dweight"], out=whole[:, 0])
    assert not whole.any()
    expected = clnorm.layer_norm_backward(dy, x, weight, needs=["dweight"]).dweight
    flat = whole.reshape(-1)[3:11]
    assert clnorm.layer_norm_backward(dy, x, weight, needs=["dweight"], out=flat).dweight is flat
    numpy.testing.assert_array_equal(flat, expected)


def test_in_place(rng):
    x = rng.standard_normal((4, 64)).astype("f4")
    expected = reference.norm(x)
    assert clnorm.layer_norm(x, out=x) is x
    reference.assert_close(x, expected, 64)


def test_empty_arrays_and_read_only_ones(rng):
    assert clnorm.layer_norm(numpy.empty((0, 4), "f4")).shape == (0, 4)
    gradients = clnorm.layer_norm_backward(*numpy.empty((2, 0, 4), "f4"), numpy.ones(4, "f4"))
    numpy.testing.assert_array_equal(gradients.dweight, 0)
    x = rng.standard_normal((2, 8)).astype("f4")
    x.flags.writeable = False
    reference.assert_close(clnorm.layer_norm(x), reference.norm(x), 8)
    with pytest.raises(ValueError, match="out: expected an array that can be written"):
        clnorm.layer_norm(x, out=x)


X = numpy.ones((4, 8), "f4")


@pytest.mark.parametrize("message,call", [
    ("x: expected a NumPy array", lambda: clnorm.layer_norm([1.0])),
    ("x: expected a dtype of float32", lambda: clnorm.layer_norm(X.astype("i4"))),
    ("x: expected at least one column", lambda: clnorm.layer_norm(X[:, :0])),
    ("weight: expected shape \\(8,\\), got \\(5,\\)", lambda: clnorm.layer_norm(X, X[0, :5])),
    ("weight: expected a NumPy array, as x is", lambda: clnorm.layer_norm(X, [1.0])),
    ("normalized_shape: expected the last", lambda: clnorm.layer_norm(X, normalized_shape=4)),
    ("residual: expected the shape of x", lambda: clnorm.layer_norm(X, residual=X[0])),
    ("activation: expected one of", lambda: clnorm.layer_norm(X, activation="relu")),
    ("seed: expected an integer", lambda: clnorm.layer_norm(X, residual=X, dropout=0.1)),
    ("^eps is -1: expected", lambda: clnorm.layer_norm(X, eps=-1)),
    ("seed: expected an integer", lambda: clnorm.layer_norm(X, residual=X, dropout=0.1, seed=(1, 2, 3))),
    ("seed: expected an integer", lambda: clnorm.layer_norm(X, residual=X, dropout=0.1, seed="one")),
    ("out: expected shape", lambda: clnorm.layer_norm(X, out=X[:2])),
    ("out: expected memory that does not overlap x", lambda: clnorm.layer_norm(X[:-1], out=X[1:])),
    ("needs: expected names of dx, got 'dz'", lambda: clnorm.layer_norm_backward(X, X, needs=["dz"])),
    ("mean: expected shape \\(4,\\), got \\(3,\\)", lambda: clnorm.layer_norm_backward(X, X, mean=X[:3, 0], rstd=X[:3, 0])),
    ("rstd: expected shape \\(4,\\), got \\(8,\\)", lambda: clnorm.rms_norm_backward(X, X, rstd=X[0])),
    ("mean: expected mean and rstd, or neither", lambda: clnorm.layer_norm_backward(X, X, rstd=X[:, 0])),
    ("mean: expected shape \\(4, 2\\), got \\(4,\\)",
     lambda: clnorm.group_norm_backward(X, X, 2, mean=X[:, 0], rstd=X[:, 0])),
    ("gate: expected one of 'silu', 'sigmoid', got None", lambda: clnorm.layer_norm(X, z=X, gate=None)),
    ("dtype: expected one of float32", lambda: clnorm.layer_norm(X, dtype="int8")),
    ("normalized_shape: expected an integer", lambda: clnorm.layer_norm(X, normalized_shape=8.0)),
    ("needs: expected names", lambda: clnorm.layer_norm_backward(X, X, needs="dx")),
    ("needs: expected a gradient", lambda: clnorm.layer_norm_backward(X, X, needs=[])),
    ("x: expected a NumPy array", lambda: clnorm.softmax([1.0])),
    ("x: expected a NumPy array", lambda: clnorm.gelu(numpy.ma.ones((2, 2)))),
    ("dim: expected a dimension", lambda: clnorm.softmax(X, 1.0)),
    ("mean: expected dtype float32", lambda: clnorm.layer_norm_backward(X, X, mean=X[:, 0].astype("f8"), rstd=X[:, 0])),
    ("dim: expected a dimension", lambda: clnorm.softmax(X, 2)),
    ("dy: expected an array as y is, got list", lambda: clnorm.softmax_backward(X.tolist(), X, 0)),
    ("dy: expected an array as y is, got NoneType", lambda: clnorm.softmax_backward(None, X, 0)),
    ("approximate: expected one of", lambda: clnorm.gelu(X, "erf")),
    ("eps_mode: expected one of", lambda: clnorm.l2_norm(X, eps_mode="max")),
    ("dtype: expected float8_e4m3fn", lambda: clnorm.quantize(X, "float16")),
    ("scale_group: expected", lambda: clnorm.quantize(X, scaling="group")),
    ("q: expected dtype", lambda: clnorm.dequantize(X, X[0, :1])),
    (r"activation: expected one of .*, got \['gelu'\]", lambda: clnorm.layer_norm(X, activation=["gelu"])),
    (r"needs: expected names of dx, got \['dx'\]", lambda: clnorm.layer_norm_backward(X, X, needs=[["dx"]])),
    ("out, from byte 0 of a buffer, overlaps residual", lambda: clnorm.layer_norm(X, residual=X, out=X)),
    ("group_size is 5: expected a divisor of columns, 8", lambda: clnorm.layer_norm(X, group_size=5)),
    ("selector: expected text of Unicode without NULs, got 'cpu", lambda: clnorm.select("cpu\0gpu")),
    ("selector: expected text of Unicode", lambda: clnorm.select("\ud800")),
    ("selector has the term 'cpü': expected gpu, cpu", lambda: clnorm.select("cpü")),
])
def test_errors_name_the_argument(message, call):
    with pytest.raises(ValueError, match=message):
        call()


Q, SCALE = clnorm.quantize(X)
D = X.astype("f8")


def to_8_bits(**options):
    return clnorm.rms_norm(X, dtype="float8_e4m3fn", **options)


@pytest.mark.parametrize("message,call", [
    ("gate: expected 'silu', the default, without a z, got 'sigmoid'", lambda: clnorm.rms_norm(X, gate="sigmoid")),
    ("gate: expected 'silu', the default", lambda: clnorm.layer_norm_backward(X, X, gate="sigmoid")),
    ("gate_first: expected False without a z", lambda: clnorm.rms_norm(X, gate_first=True)),
    ("gate_first: expected False without a z", lambda: clnorm.rms_norm_backward(X, X, gate_first=True)),
    ("weight_offset is 1: expected 0 without a weight", lambda: clnorm.rms_norm(X, weight_offset=1)),
    ("x_scale: expected none where x is not of 8 bits", lambda: clnorm.rms_norm(X, x_scale=SCALE)),
    ("x_scale_group: expected 0 where x is not of 8 bits, got 4", lambda: clnorm.rms_norm(X, x_scale_group=4)),
    ("x_scale_group: expected 0 where x is not of 8 bits", lambda: clnorm.rms_norm_backward(X, X, x_scale_group=4)),
    ("x_scale: expected none where x is not of 8 bits", lambda: clnorm.group_norm(X, 2, x_scale=SCALE)),
    ("scaling: expected none where y is not of", lambda: clnorm.rms_norm(X, scaling="row")),
    ("scale_group: expected none where y is not of", lambda: clnorm.rms_norm(X, scale_group=16)),
    ("scale: expected none where y is not of", lambda: clnorm.rms_norm(X, scale=1.0)),
    ("scale: expected none where y is not of", lambda: clnorm.group_norm(X, 2, scale=1.0)),
    ("scale_group: expected 0 with a scaling of 'row'", lambda: to_8_bits(scaling="row", scale_group=16)),
    ("scale_group: expected 0 with a scaling of 'tensor'", lambda: to_8_bits(scale_group=16)),
    ("scale_group: expected 0 with a scaling of 'row'", lambda: clnorm.quantize(X, scaling="row", scale_group=16)),
    ("scale: expected 0 with a scaling of 'row'", lambda: to_8_bits(scaling="row", scale=2.0)),
    ("scale: expected 0 with a scaling of 'group'", lambda: clnorm.quantize(X, scaling="group", scale_group=4, scale=2.0)),
    ("scaling: expected one of 'tensor', 'row', got 'group'",
     lambda: clnorm.group_norm(X, 2, dtype="float8_e5m2", scaling="group")),
    ("scaling: expected one of 'tensor', 'row', 'group', got None", lambda: clnorm.quantize(X, scaling=None)),
    ("^scale is -1: expected 0, or a number", lambda: clnorm.quantize(X, scale=-1)),
    ("^scale_group is 17: expected 16, 32", lambda: to_8_bits(scaling="group", scale_group=17)),
    ("residual: expected None with x_is_sum", lambda: clnorm.rms_norm_backward(X, X, x_is_sum=True, residual=X)),
    ("dx_dtype: expected None, as needs has no 'dx'",
     lambda: clnorm.rms_norm_backward(X, X, X[0], needs=["dweight"], dx_dtype="float16")),
    ("dx_dtype: expected a dtype of 16 bits or more", lambda: clnorm.rms_norm_backward(X, X, dx_dtype="float8_e5m2")),
    (r"row_scale: expected shape \(4,\), a factor for each row, got \(2, 2\)",
     lambda: clnorm.rms_norm(X, row_scale=X[:2, :2].copy())),
    ("stochastic_seed: expected an integer of 64 bits", lambda: clnorm.quantize(X, stochastic_seed=2**64)),
    ("seed: expected an integer of 64 bits", lambda: clnorm.rms_norm(X, dropout=0.1, seed=-(2**63) - 1)),
    ("dim: expected a dimension of an array", lambda: clnorm.softmax(X, True)),
])
def test_options_that_would_have_no_effect_are_refused(message, call):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("message,call", [
    ("weight: expected a dtype of float32, float64, as x has float64, got float16",
     lambda: clnorm.rms_norm(D, X[0].astype("f2"))),
    ("weight: expected a dtype of float64, as x has float64, got float32", lambda: clnorm.l2_norm(D, X[0])),
    ("weight: expected a dtype of float32, float16, bfloat16, as x has float32, got float64",
     lambda: clnorm.group_norm(X, 2, D[0])),
    ("residual: expected a dtype of float32, float16, bfloat16, as x has float32", lambda: clnorm.rms_norm(X, residual=D)),
    ("dy: expected a dtype of float32, float16, bfloat16, as x has float32", lambda: clnorm.gelu_backward(D, X)),
    ("dy: expected a dtype of .*, as y has float32, got float64", lambda: clnorm.softmax_backward(D, X)),
    ("dy: expected a dtype of .*, got float8_e4m3fn", lambda: clnorm.rms_norm_backward(Q, X)),
    ("x: expected a dtype of .*, got float8_e4m3fn", lambda: clnorm.softmax(Q)),
    ("dtype: expected float64, as x has float64, got float16", lambda: clnorm.rms_norm(D, dtype="float16")),
    ("dtype: expected none but float64, as x has float32", lambda: clnorm.group_norm(X, 2, dtype=float)),
    ("dx_dtype: expected none but float64", lambda: clnorm.rms_norm_backward(X, X, dx_dtype="float64")),
    ("x: expected dtype float32, float16 or bfloat16, got float64", lambda: clnorm.quantize(D)),
    ("dtype: expected float32, float16 or bfloat16, got float64", lambda: clnorm.dequantize(Q, SCALE, "float64")),
    ("scale: expected dtype float32 or bfloat16, got float64", lambda: clnorm.dequantize(Q, SCALE.astype("f8"))),
])
def test_dtypes_that_do_not_go_together_are_refused(message, call):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


@pytest.mark.parametrize("message,call", [
    ("eps: expected a number, got 'a'", lambda: clnorm.layer_norm(X, eps="a")),
    ("group_size: expected an integer, 0 or more, got -1", lambda: clnorm.layer_norm(X, group_size=-1)),
    ("scale: expected a number, got 'a'", lambda: clnorm.quantize(X, scale="a")),
    ("dropout: expected a number, got 'x'", lambda: clnorm.layer_norm(X, dropout="x", seed=1)),
    ("weight_offset: expected a number, got None", lambda: clnorm.rms_norm(X, weight_offset=None)),
    ("num_groups: expected an integer, 1 or more, got 2.0", lambda: clnorm.group_norm(X, 2.0)),
    ("stochastic_seed: expected an integer, got 1.5", lambda: clnorm.quantize(X, stochastic_seed=1.5)),
    ("weight_repeat: expected an integer, 1 or more, got 'a'", lambda: clnorm.rms_norm(X, X, weight_repeat="a")),
    ("rope.repeat: expected an integer, 1 or more, got 1.0",
     lambda: clnorm.rms_norm(X, rope=clnorm.Rope(X[:, :4], X[:, :4], repeat=1.0))),
    ("scale_group: expected an integer, 0 or more, got 'a'", lambda: clnorm.quantize(X, scaling="group", scale_group="a")),
    ("x_scale_group: expected an integer", lambda: clnorm.rms_norm(X, x_scale_group=0.0)),
    ("group_size: expected an integer, 0 or more, got 'a'", lambda: clnorm.norm_statistics(X, group_size="a")),
    ("group_size: expected an integer, 0 or more, got 'a'", lambda: clnorm.l2_norm(X, group_size="a")),
    ("normalized_shape: expected an integer, 0 or more, got 8.0", lambda: clnorm.rms_norm(X, normalized_shape=(8.0,))),
    ("gate_first: expected True or False, got 'no'", lambda: clnorm.rms_norm(X, z=X, gate_first="no")),
    ("save_stats: expected True or False, got 1", lambda: clnorm.rms_norm(X, save_stats=1)),
    ("channels_last: expected True or False, got 'no'", lambda: clnorm.group_norm(X, 2, channels_last="no")),
    ("save_norm: expected True or False, got None", lambda: clnorm.l2_norm(X, save_norm=None)),
    ("x_is_sum: expected True or False, got 'x'", lambda: clnorm.rms_norm_backward(X, X, x_is_sum="x")),
    ("eps: expected a number, got True", lambda: clnorm.rms_norm(X, eps=True)),
    ("group_size: expected an integer, 0 or more, got True", lambda: clnorm.rms_norm(X, group_size=True)),
    ("normalized_shape: expected an integer, 0 or more, got True", lambda: clnorm.rms_norm(X, normalized_shape=True)),
    ("selector: expected text", lambda: clnorm.select(3)),
    ("selector: expected text", lambda: clnorm.select(b"cpu")),
])
def test_options_of_another_type_are_type_errors(message, call):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3, 5), (0, 4)])
def test_the_other_byte_order(rng, shape):
    x = numpy.asarray(rng.standard_normal(shape), "f4")
    swapped = x.astype(x.dtype.newbyteorder())
    numpy.testing.assert_array_equal(clnorm.gelu(swapped), clnorm.gelu(x))
    if shape:
        weight = numpy.full(shape[-1], 0.75, "f4")
        expected = clnorm.rms_norm(x, weight)
        numpy.testing.assert_array_equal(clnorm.rms_norm(swapped, weight.astype(swapped.dtype)), expected)


def test_a_scale_of_the_other_byte_order(rng):
    q, scale = clnorm.quantize(rng.standard_normal((3, 8)).astype("f4"))
    expected = clnorm.dequantize(q, scale)
    numpy.testing.assert_array_equal(clnorm.dequantize(q, scale.astype(scale.dtype.newbyteorder())), expected)


@pytest.mark.parametrize("function", [
    lambda n: clnorm.layer_norm(X, group_size=n),
    lambda n: clnorm.l2_norm(X, group_size=n),
    lambda n: clnorm.group_norm(X, n),
    lambda n: clnorm.quantize(X, scaling="group", scale_group=n),
    lambda n: clnorm.quantize(X, stochastic_seed=n),
])
def test_an_integer_is_no_float_after_a_call_with_it_either(function):
    function(4)
    function(numpy.int64(4))
    with pytest.raises(TypeError, match="expected an integer"):
        function(4.0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    lead=st.lists(st.integers(0, 5), max_size=3), columns=st.sampled_from([1, 2, 7, 16, 33, 100, 255]),
    dtype=st.sampled_from([numpy.float32, ml_dtypes.bfloat16]), step=st.sampled_from([1, 2, -1]),
    transposed=st.booleans(), offset=st.integers(0, 3), layer=st.booleans(), seed=st.integers(0, 2**32),
)
def test_any_shape_strides_and_alignment(lead, columns, dtype, step, transposed, offset, layer, seed):
    numbers = numpy.random.default_rng(seed).standard_normal((*lead, columns + offset)).astype(dtype)
    x = numbers[..., offset:][..., ::step] if step != 2 else numpy.repeat(numbers[..., offset:], 2, -1)[..., ::2]
    x = x.swapaxes(0, -2) if transposed and len(lead) > 1 else x
    before = numpy.array(x)
    norm = clnorm.layer_norm if layer else clnorm.rms_norm
    condition = reference.norm_condition(before) if layer else 0.0
    reference.assert_close(norm(x), reference.norm(before, layer=layer), columns, condition)
    numpy.testing.assert_array_equal(x, before)


FUNCTIONS = [
    lambda x, dy: (clnorm.softmax(x), clnorm.softmax_backward(dy, x)),
    lambda x, dy: (clnorm.gelu(x), clnorm.gelu_backward(dy, x, "tanh")),
    lambda x, dy: (clnorm.l2_norm(x), clnorm.l2_norm_backward(dy, x).dx),
    lambda x, dy: clnorm.rms_norm(x, residual=dy, z=x, activation="gelu")[:2],
    lambda x, dy: clnorm.layer_norm_backward(dy, x, x.reshape(-1, x.shape[-1])[0])[:2],
    lambda x, dy: (clnorm.group_norm(x, 1, activation="silu"), clnorm.group_norm_backward(dy, x, 1).dx),
    lambda x, dy: clnorm.quantize(x.astype("f4") if x.dtype == "f8" else x, scaling="row"),
]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    function=st.sampled_from(FUNCTIONS), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 2**32),
    shape=st.lists(st.integers(1, 5), min_size=2, max_size=5), columns=st.sampled_from([1, 3, 16, 40, 257]),
    order=st.randoms(use_true_random=False), steps=st.lists(st.sampled_from([1, 1, 2, -1]), min_size=6, max_size=6),
)
def test_a_view_gives_what_its_copy_gives(function, dtype, seed, shape, columns, order, steps):
    """Any order of the dimensions, gaps and negative steps: every function's results are those of a dense copy, to the bit."""
    whole = numpy.random.default_rng(seed).standard_normal((2, *[2 * size for size in shape], 2 * columns)).astype(dtype)
    axes = list(range(len(shape)))
    order.shuffle(axes)
    axes.insert(order.randrange(len(axes) + 1) if steps[-1] != 1 else len(axes), len(shape))  # columns often stay columns
    cut = tuple(slice(None, size * abs(step), step) if step > 0 else slice(size - 1, None, -1)
                for size, step in zip((*shape, columns), steps))
    x, dy = (part[cut].transpose(axes) for part in whole)
    for got, expected in zip(function(x, dy), function(x.copy(), dy.copy())):
        numpy.testing.assert_array_equal(numpy.asarray(got, "f8"), numpy.asarray(expected, "f8"))
