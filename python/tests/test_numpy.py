"""NumPy arrays: values of every operation and its gradients, dtypes, empty arrays."""

import ml_dtypes
import numpy
import pytest
import reference

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
        reference.assert_close(got.astype("f4"), exact, 97)  # the sums are in float32 even for a dweight of float64
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


def test_the_backward_has_the_mask_of_dropout(rng):
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
    by_row = [w if heads else w[:, None] for w in (weight, bias)]  # in the shapes in which they broadcast
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


@pytest.mark.parametrize("needs", [["dx"], ("dbias", "dx"), ["dx", "dweight"], None])
def test_gradients_that_are_needed(rng, needs):
    x, dy = rng.standard_normal((2, 3, 8, 30)).astype("f4")
    weight = rng.standard_normal(8).astype("f4")
    for backward in (lambda **options: clnorm.group_norm_backward(dy, x, 2, weight, weight, **options),
                     lambda **options: clnorm.l2_norm_backward(dy, x, x[0, 0], **options)):
        every = backward()
        got = backward(needs=[name for name in needs if name in every._fields] if needs else None)
        for name, gradient in got._asdict().items():
            if name == "dresidual" or (needs and name not in needs):
                assert gradient is None
            else:
                reference.assert_close(gradient, getattr(every, name), 100)


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


@pytest.mark.parametrize("dim", [-1, 0])
def test_softmax_of_an_array_without_dimensions(dim):
    x, out = numpy.array(3, "f4"), numpy.array(0, "f4")
    assert clnorm.softmax(x, dim, out=out) is out and out == 1
    assert clnorm.softmax(x, dim).shape == () and clnorm.softmax_backward(x, out, dim) == 0
    with pytest.raises(ValueError, match=r"dim: expected a dimension of an array of shape \(\), got 1"):
        clnorm.softmax(x, 1)
    with pytest.raises(ValueError, match="x: expected a NumPy array"):
        clnorm.softmax(numpy.float32(3))


@pytest.mark.parametrize("shape", [(), (7,), (0, 4), (3, 5), (4, 300)])
def test_gelu(rng, shape):
    x = rng.standard_normal(shape).astype("f4")
    x = numpy.asarray(x, "f4")  # of shape () it is a number
    reference.assert_close(clnorm.gelu(x), reference.gelu(x) if x.size else x)


def test_l2_norm(rng):
    x, weight = rng.standard_normal((6, 48)).astype("f4"), rng.standard_normal(48).astype("f4")
    length = numpy.sqrt((numpy.asarray(x, "f8") ** 2).sum(-1))
    out = clnorm.l2_norm(x, weight, save_norm=True)
    reference.assert_close(out.y, x / length[:, None] * numpy.asarray(weight, "f8"), 48)
    reference.assert_close(out.norm, length, 48)
    gradients = clnorm.l2_norm_backward(x, x)
    assert gradients.dweight is None
    assert numpy.abs(gradients.dx).max() < 1e-5  # dy is x, and y does not change with the length of x
    again, given = (clnorm.l2_norm_backward(weight + x, x, weight, norm=norm) for norm in (None, out.norm))
    assert all((a == b).all() for a, b in zip(again, given))
    reference.assert_close(clnorm.l2_norm_backward(x, x, weight, norm=length.astype("f4") * 2).dweight,
                           (numpy.asarray(x, "f8") ** 2 / length[:, None] / 2).sum(0), 48)
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


def test_stochastic_rounding_has_a_seed_for_each_call(rng):
    x = rng.standard_normal((8, 80)).astype("f4")
    seeds = (5, (5, 1), [5, 2**63], 6, (-1, -1))
    codes = [clnorm.quantize(x, stochastic_seed=seed).q.view("u1") for seed in seeds]
    for i, code in enumerate(codes):
        numpy.testing.assert_array_equal(clnorm.quantize(x, stochastic_seed=seeds[i]).q.view("u1"), code)
        assert not any((code == other).all() for other in codes[:i])
    numpy.testing.assert_array_equal(clnorm.quantize(x, stochastic_seed=(5, 0)).q.view("u1"), codes[0])


@pytest.mark.parametrize("dtype,largest", [("float8_e4m3fn", 448), ("float8_e5m2", 57344)])
def test_quantize_infinities_and_nans(dtype, largest):
    x = numpy.array([[1, -numpy.inf, numpy.inf, numpy.nan]], "f4")
    q, scale = clnorm.quantize(x, dtype)
    assert scale[0] == numpy.float32((1 + 1e-10) / largest)
    numpy.testing.assert_array_equal(q.astype("f4"), [[largest, -largest, largest, numpy.nan]])


def test_a_given_scale_is_returned(rng):
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


def test_sizes_are_integers_of_any_type(rng):
    x = rng.standard_normal((2, 3, 8)).astype("f4")
    for shape in (numpy.int64(8), (numpy.int32(3), 8), [3, numpy.uint8(8)]):
        expected = clnorm.layer_norm(x, normalized_shape=8 if shape == 8 else (3, 8))
        numpy.testing.assert_array_equal(clnorm.layer_norm(x, normalized_shape=shape), expected)


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
