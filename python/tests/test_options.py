"""Options of the C library's descriptors: dtypes of results, masks, scales, results that are computed again."""

import ml_dtypes
import numpy
import pytest
import reference

import clnorm
from clnorm import _arrays, _call

torch = pytest.importorskip("torch")

REALS = [numpy.dtype(numpy.float32), numpy.dtype(numpy.float16), numpy.dtype(ml_dtypes.bfloat16)]
DTYPES = [*REALS, numpy.dtype(numpy.float64)]


def exact(array):
    return torch.tensor(numpy.asarray(array, "f8"), requires_grad=True)


def gradients_of(function, dy, *arrays):
    """The result of a function of tensors, and the gradients of the arrays, in float64."""
    tensors = [exact(array) for array in arrays]
    y = function(*tensors)
    y.backward(exact(dy).detach())
    return [y.detach().numpy(), *[tensor.grad.numpy() for tensor in tensors]]


@pytest.mark.parametrize("x_dtype,dtype", [(REALS[2], REALS[0]), (REALS[0], REALS[2]), (REALS[1], REALS[2])], ids=str)
@pytest.mark.parametrize("shape", [(7, 33), (3, 2, 260)], ids=str)
def test_results_of_another_dtype(rng, x_dtype, dtype, shape):
    x, dy = rng.standard_normal((2, *shape)).astype(x_dtype)
    weight = rng.uniform(0.5, 1.5, shape[-1]).astype(x_dtype)

    def check(got, expected, terms=0.0):
        assert got.dtype == dtype
        reference.assert_close(got, expected, shape[-1], terms)

    y, dx = gradients_of(torch.nn.functional.gelu, dy, x)
    check(clnorm.gelu(x, dtype=dtype), y)
    check(clnorm.gelu_backward(dy, x, dx_dtype=dtype), dx)
    for dim in (-1, 0):
        y, _ = gradients_of(lambda t: torch.softmax(t, dim), dy, x)
        check(clnorm.softmax(x, dim, dtype=dtype), y)
        given = y.astype(x_dtype)
        terms = numpy.asarray(given, "f8") * numpy.asarray(dy, "f8")
        dx = terms - numpy.asarray(given, "f8") * terms.sum(dim, keepdims=True)
        check(clnorm.softmax_backward(dy, given, dim, dx_dtype=dtype), dx, numpy.abs(terms).sum(dim).max())
    y, dx, dweight = gradients_of(lambda t, w: torch.nn.functional.normalize(t, dim=-1) * w, dy, x, weight)
    check(clnorm.l2_norm(x, weight, dtype=dtype), y)
    gradients = clnorm.l2_norm_backward(dy, x, weight, dx_dtype=dtype)
    check(gradients.dx, dx, numpy.abs(dx).max())
    assert gradients.dweight.dtype == x_dtype


@pytest.mark.parametrize("dtype,layer", [(REALS[0], True), (REALS[1], False), (REALS[2], True)], ids=str)
def test_slices_of_another_dtype_and_needed_gradients(rng, dtype, layer):
    x, dy, norm = *rng.standard_normal((2, 6, 33)).astype("f4"), "layer_norm" if layer else "rms_norm"
    moments = clnorm.norm_statistics(x, norm=norm)
    y = clnorm.norm_apply(x, moments, norm=norm, dtype=dtype)
    assert y.dtype == dtype
    reference.assert_close(y, reference.norm(x, layer=layer), 33)
    sums = clnorm.norm_backward_statistics(dy, x, moments, norm=norm)
    expected = dict(zip(("dx", "dweight", "dbias"), reference.norm_backward(dy, x, layer=layer)))
    for needs in (("dx",), ["dx", "dbias"], ("dweight", "dx"), None):
        got = clnorm.norm_backward_apply(dy, x, moments, sums, norm=norm, needs=needs, dx_dtype=dtype)
        assert got.dx.dtype == dtype
        assert {name for name, array in got._asdict().items() if array is not None} == set(needs or expected)
        for name in needs or expected:
            reference.assert_close(getattr(got, name), expected[name], 33, numpy.abs(dy).sum(0).max())


@pytest.mark.parametrize("positions,channels_last", [(1, False), (9, False), (65, False), (9, True)])
@pytest.mark.parametrize("of_x,of_sum", [(REALS[2], REALS[0]), (REALS[0], REALS[1]), (DTYPES[3], DTYPES[3])], ids=str)
def test_gradients_of_group_norm_in_the_dtypes_of_x_and_residual(rng, of_x, of_sum, positions, channels_last):
    """The backward gets s, which has the dtype of the residual; dx has that of x."""
    shape = (3, positions, 10) if channels_last else (3, 10, positions)
    s, from_above = rng.standard_normal((2, *shape)).astype(of_sum)
    dy, weight = rng.standard_normal(shape).astype(of_x), rng.uniform(0.5, 1.5, 10).astype(of_x)
    got = clnorm.group_norm_backward(dy, s, 2, weight, dresidual_out=from_above, channels_last=channels_last, dx_dtype=of_x,
                                     needs=["dx", "dweight", "dresidual"])

    def norm(t, w):
        t = t.movedim(-1, 1) if channels_last else t
        n = torch.nn.functional.group_norm(t, 2, w)
        return n.movedim(1, -1) if channels_last else n

    _, dx, dweight = gradients_of(norm, dy, s, weight)
    dx = dx + numpy.asarray(from_above, "f8")
    size = numpy.abs(dx).max() + numpy.abs(numpy.asarray(dy, "f8")).sum((0, 1 if channels_last else 2)).max()
    assert (got.dx.dtype, got.dresidual.dtype, got.dbias) == (of_x, of_sum, None)
    reference.assert_close(got.dx, dx, 5 * positions, size)
    reference.assert_close(got.dresidual, dx, 5 * positions, size)
    reference.assert_close(got.dweight, dweight, 3 * positions, 4 * size)
    default = clnorm.group_norm_backward(dy, s, 2, weight, dresidual_out=from_above, channels_last=channels_last)
    assert default.dx.dtype == of_sum and default.dresidual is None
    numpy.testing.assert_array_equal(numpy.asarray(default.dx), numpy.asarray(got.dresidual))


@pytest.mark.parametrize("function", [clnorm.layer_norm, clnorm.rms_norm])
@pytest.mark.parametrize("shape", [(5, 33), (2, 3, 256)])
def test_the_mask_of_dropout(rng, function, shape):
    x, options = numpy.ones(shape, "f4"), {"dropout": 0.4, "seed": (3, 4)}
    out = function(x, residual=numpy.zeros_like(x), save_mask=True, save_stats=True, **options)
    assert out.dropout_mask.dtype == bool and out.dropout_mask.shape == shape
    numpy.testing.assert_array_equal(out.dropout_mask, out.residual_out != 0)
    assert 0 < out.dropout_mask.mean() < 1 and out.rstd is not None
    for _ in range(2):
        alone = function(torch.ones(shape), save_mask=True, **options)
        assert alone.dropout_mask.dtype == torch.bool
        numpy.testing.assert_array_equal(alone.dropout_mask, out.dropout_mask)
    assert function(x, residual=x, **options).dropout_mask is None


@pytest.mark.parametrize("scaling,group", [("tensor", 0), ("row", 0), ("group", 32)])
@pytest.mark.parametrize("dtype", [REALS[0], REALS[2]], ids=str)
def test_the_largest_elements_of_quantize(rng, scaling, group, dtype):
    x = rng.standard_normal((6, 80)).astype(dtype)
    x[2, 3], x[4, 5] = numpy.inf, numpy.nan
    finite = numpy.where(numpy.isfinite(x.astype("f4")), numpy.abs(x.astype("f4")), 0)
    padded = numpy.pad(finite, ((0, 0), (0, 16))).reshape(6, 3, 32)
    expected = {"tensor": finite.max().reshape(1), "row": finite.max(1), "group": padded.max(2)}[scaling]
    for transposed in (False, True):
        out = clnorm.quantize(x, scaling=scaling, scale_group=group, save_amax=True, transposed=transposed)
        numpy.testing.assert_array_equal(out.amax, expected)
        assert (out.q_transposed is not None) == transposed and out.amax.dtype == "f4"
        numpy.testing.assert_array_equal(out.scale, clnorm.quantize(x, scaling=scaling, scale_group=group).scale)
    given = clnorm.quantize(x, scale=0.5, save_amax=True)
    assert given.amax == finite.max() and given.scale == 0.5
    assert clnorm.quantize(x, transposed=True).amax is None


@pytest.mark.parametrize("scaling,group", [("tensor", 0), ("row", 0), ("group", 32)])
def test_scales_in_bfloat16(rng, scaling, group):
    x, options = rng.standard_normal((6, 96)).astype("f4"), {"scaling": scaling, "scale_group": group}
    single, out = (clnorm.quantize(x, scale_dtype=dtype, **options) for dtype in ("float32", ml_dtypes.bfloat16))
    assert single.scale.dtype == "f4" and out.scale.dtype == ml_dtypes.bfloat16
    numpy.testing.assert_array_equal(out.scale, single.scale.astype(ml_dtypes.bfloat16))
    step = out.scale.astype("f4").reshape({"tensor": (1, 1), "row": (6, 1), "group": (6, 3)}[scaling])
    codes = (x / numpy.repeat(step, 96 // step.shape[1], 1)).clip(-448, 448).astype(ml_dtypes.float8_e4m3fn)
    numpy.testing.assert_array_equal(out.q, codes)
    y = clnorm.rms_norm(x, dtype="float8_e4m3fn", scale_dtype="bfloat16", **options)
    single = clnorm.rms_norm(x, dtype="float8_e4m3fn", **options)
    numpy.testing.assert_array_equal(y.scale, single.scale.astype(ml_dtypes.bfloat16))
    if scaling != "group":
        y = clnorm.group_norm(x, 4, dtype="float8_e4m3fn", scaling=scaling, scale_dtype="bfloat16")
        single = clnorm.group_norm(x, 4, dtype="float8_e4m3fn", scaling=scaling)
        numpy.testing.assert_array_equal(y.scale, single.scale.astype(ml_dtypes.bfloat16))


def test_coats_rounding(rng):
    x = rng.standard_normal((6, 96)).astype("f4")
    y = clnorm.layer_norm(x).astype(ml_dtypes.bfloat16).astype("f4")
    out = clnorm.layer_norm(x, dtype="float8_e4m3fn", accuracy="compatible", scaling="row")
    scale = ((numpy.abs(y).max(1) + numpy.float32(1e-10)) / numpy.float32(448)).astype(ml_dtypes.bfloat16)
    numpy.testing.assert_array_equal(out.scale, scale)
    codes = (y / scale.astype("f4")[:, None]).clip(-448, 448).astype(ml_dtypes.float8_e4m3fn)
    numpy.testing.assert_array_equal(out.y, codes)
    fused = clnorm.layer_norm(x, dtype="float8_e4m3fn", accuracy="fused", scaling="row", scale_dtype="bfloat16")
    assert (fused.y.view("u1") != out.y.view("u1")).any()
    single = clnorm.layer_norm(x, dtype="float8_e4m3fn", accuracy="compatible", scale_dtype="float32")
    assert single.scale.dtype == "f4"


@pytest.mark.parametrize("options", [{}, {"accuracy": "compatible"}, {"y_transposed": True}])
def test_the_scale_that_each_row_would_have(rng, options):
    x = rng.standard_normal((2, 3, 96)).astype("f4")
    out = clnorm.rms_norm(x, dtype="float8_e4m3fn", save_y_row_scale=True, **options)
    by_row = clnorm.rms_norm(x, dtype="float8_e4m3fn", scaling="row", **options)
    assert out.y_row_scale.shape == (2, 3) and out.scale.shape == (1,)
    numpy.testing.assert_array_equal(out.y_row_scale, by_row.scale)
    assert out.y_row_scale.max() == out.scale and by_row.y_row_scale is None


@pytest.mark.parametrize("dtype,layer", [(DTYPES[0], True), (DTYPES[2], False), (DTYPES[3], True)], ids=str)
def test_y_is_computed_again(rng, dtype, layer):
    x, residual, z, dy = rng.standard_normal((4, 5, 33)).astype(dtype)
    weight, bias = rng.standard_normal((2, 33)).astype(dtype)
    name = "layer_norm" if layer else "rms_norm"
    forward, backward = getattr(clnorm, name), getattr(clnorm, name + "_backward")
    for inputs in ({}, {"residual": residual}, {"z": z, "activation": "silu"}):
        y = forward(x, weight, bias, **inputs)
        y = y.y if "residual" in inputs else y
        got = backward(dy, x, weight, bias, save_y=True, **inputs)
        assert got.y.dtype == dtype
        reference.assert_close(got.y, y, 33, numpy.abs(numpy.asarray(y, "f8")).max())
        plain = backward(dy, x, weight, bias, **inputs)
        assert plain.y is None
        for gradient, same in zip(got[:5], plain[:5]):
            numpy.testing.assert_array_equal(gradient, same)


def wide_gap(x, gap):
    whole = numpy.full((*x.shape[:-1], x.shape[-1] + gap), -7, x.dtype)
    return whole, whole[..., 2:2 + x.shape[-1]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layer,offset", [(True, 0.0), (False, 1.0)])
def test_gradients_from_y_alone(rng, dtype, layer, offset):
    x, dy = rng.standard_normal((2, 9, 33)).astype(dtype)
    weight, bias = rng.uniform(0.5, 1.5, 33).astype(dtype), rng.uniform(-0.5, 0.5, 33).astype(dtype)
    name = "layer_norm" if layer else "rms_norm"
    forward, backward = getattr(clnorm, name), getattr(clnorm, name + "_backward")
    _, y = wide_gap(x, 7)
    rstd = forward(x, weight, bias, weight_offset=offset, save_stats=True, out=y).rstd
    got = backward(dy, y, weight, bias, rstd=rstd, weight_offset=offset, x_is_y=True)
    dy, y, weight, bias, rstd = (numpy.asarray(array, "f8") for array in (dy, y, weight, bias, rstd[:, None]))
    x_hat, wdy = (y - bias) / (weight + offset), dy * (weight + offset)
    dx = rstd * (wdy - x_hat * (x_hat * wdy).mean(1, keepdims=True) - layer * wdy.mean(1, keepdims=True))
    size = numpy.abs(dy * x_hat).sum(0).max() + numpy.abs(dx).max()
    for gradient, expected in zip(got, (dx, (dy * x_hat).sum(0), dy.sum(0))):
        assert gradient.dtype == dtype
        reference.assert_close(gradient, expected, 33, size)
    assert got.inexact_columns.tolist() == [0]
    if dtype == numpy.float64:  # then PyTorch's gradients of x are the same
        function = (lambda t: torch.nn.functional.layer_norm(t, (33,), exact(weight + offset), exact(bias))) if layer else (
            lambda t: torch.nn.functional.rms_norm(t, (33,), exact(weight + offset), 1e-5))
        _, dx = gradients_of(function, dy, x)
        numpy.testing.assert_allclose(got.dx, dx, rtol=0, atol=1e-12)


def test_columns_whose_x_cannot_be_computed_are_counted(rng):
    x, dy, weight = *rng.standard_normal((2, 5, 33)).astype("f4"), numpy.ones(33, "f4")
    weight[[3, 7]] = 0, 1e-3
    out = clnorm.rms_norm(x, weight, save_stats=True)
    for bound, count in ((0.0, 1), (0.01, 2)):
        got = clnorm.rms_norm_backward(dy, out.y, weight, rstd=out.rstd, x_is_y=True, weight_bound=bound)
        assert got.inexact_columns.tolist() == [count]
        assert numpy.isnan(got.dx).all() and numpy.isnan(got.dweight).all()
    bias = numpy.full(33, 3, "f4")
    out = clnorm.rms_norm(x, numpy.ones(33, "f4"), bias, save_stats=True)
    for bound, count in ((0.0, 0), (2.0, 33)):
        got = clnorm.rms_norm_backward(dy, out.y, numpy.ones(33, "f4"), bias, rstd=out.rstd, x_is_y=True, bias_bound=bound)
        assert got.inexact_columns.tolist() == [count]


@pytest.mark.parametrize("dtype", [DTYPES[0], DTYPES[2]], ids=str)
@pytest.mark.parametrize("columns", [1, 7, 33, 255, 256])
def test_gelu_of_rows_with_gaps(rng, dtype, columns):
    x, dy = rng.standard_normal((2, 3, 5, columns)).astype(dtype)
    y, dx = clnorm.gelu(x), clnorm.gelu_backward(dy, x)
    for source in (x, wide_gap(x, 5)[1]):
        source[...] = x
        for function, expected in ((clnorm.gelu, y), (lambda array, **out: clnorm.gelu_backward(dy, array, **out), dx)):
            whole, out = wide_gap(x, 9)
            assert function(source, out=out) is out
            numpy.testing.assert_array_equal(out, expected)
            assert (whole[..., :2] == -7).all() and (whole[..., 2 + columns:] == -7).all()
            numpy.testing.assert_array_equal(function(source), expected)
    assert clnorm.gelu(source, out=source) is source
    numpy.testing.assert_array_equal(source, y)


def test_dense_narrow_rows_are_one_row_of_gelu():
    x = numpy.ones((6, 256), "f4")
    for x, rows in ((x[:, :50].copy(), 1), (x[:, :50], 6), (x, 6)):
        _call._records.clear()
        _call._quick.clear()
        clnorm.gelu(x)
        assert [record.kept[0].rows for record in _call._records.values()] == [rows]


X, W = numpy.ones((4, 32), "f4"), numpy.ones(32, "f4")
D, SUMS = X.astype("f8"), X[:, :2].copy()
RSTD, MOMENTS = numpy.ones(4, "f4"), clnorm.norm_statistics(X)


def test_results_without_rows_are_zeros(monkeypatch):
    monkeypatch.setattr(_arrays.Numpy, "empty", lambda like, shape, dtype: numpy.full(shape, 7, _arrays.numpy_dtype(dtype)))
    monkeypatch.setattr(_call, "_records", {})
    none, weight = numpy.ones((0, 8), "f4"), numpy.ones(8, "f4")
    quantized = clnorm.quantize(none, save_amax=True)
    assert quantized.scale == 0 and quantized.amax == 0
    gradients = clnorm.rms_norm_backward(none, none, weight, rstd=none[:, 0], x_is_y=True)
    assert gradients.inexact_columns == 0 and not gradients.dweight.any()


def from_y(**options):
    return clnorm.layer_norm_backward(X, X, **{"weight": W, "rstd": RSTD, "x_is_y": True, **options})


@pytest.mark.parametrize("message,call", [
    ("dtype: expected a dtype of 16 bits or more, got float8_e5m2", lambda: clnorm.gelu(X, dtype="float8_e5m2")),
    ("dtype: expected a dtype of 16 bits or more", lambda: clnorm.softmax(X, 0, dtype="float8_e5m2")),
    ("dtype: expected one of float32, .*, got 'int8'", lambda: clnorm.l2_norm(X, dtype="int8")),
    ("dtype: expected no float64, as x has float32, got float64", lambda: clnorm.l2_norm(X, dtype="float64")),
    ("dtype: expected float64, as x has float64, got float16",
     lambda: clnorm.norm_apply(D, D[:, :3].copy(), dtype="float16")),
    ("dx_dtype: expected no float64", lambda: clnorm.gelu_backward(X, X, dx_dtype="float64")),
    ("dx_dtype: expected float64, as x has float64", lambda: clnorm.softmax_backward(D, D, dx_dtype="float16")),
    ("dx_dtype: expected a dtype of 16 bits or more",
     lambda: clnorm.group_norm_backward(X, X, 4, dx_dtype="float8_e4m3fn")),
    ("dx_dtype: expected no float64", lambda: clnorm.group_norm_backward(X, X, 4, dx_dtype=float)),
    ("dx_dtype: expected a dtype of 16 bits or more", lambda: clnorm.l2_norm_backward(X, X, dx_dtype="float8_e4m3fn")),
    ("needs: expected 'dx', which is always computed",
     lambda: clnorm.norm_backward_apply(X, X, MOMENTS, SUMS, needs=["dbias"])),
    ("needs: expected names of dx, dweight, dbias, got 'dz'",
     lambda: clnorm.norm_backward_apply(X, X, MOMENTS, SUMS, needs=["dz"])),
    ("needs: expected names of dx, dresidual, got 'dz'", lambda: clnorm.group_norm_backward(X, X, 4, needs=["dx", "dz"])),
    ("needs: expected 'dx', which is always computed", lambda: clnorm.group_norm_backward(X, X, 4, needs=["dresidual"])),
    (r"out: expected shape \(4, 32\) and dtype float16, got \(4, 32\) and float32",
     lambda: clnorm.gelu(X, dtype="float16", out=X.copy())),
    ("save_mask: expected False without dropout", lambda: clnorm.rms_norm(X, save_mask=True)),
    ("save_y_row_scale: expected False without one measured scale of y", lambda: clnorm.rms_norm(X, save_y_row_scale=True)),
    ("save_y_row_scale: expected False without one measured scale of y",
     lambda: clnorm.rms_norm(X, dtype="float8_e5m2", scaling="row", save_y_row_scale=True)),
    ("save_y_row_scale: expected False without one measured scale of y",
     lambda: clnorm.rms_norm(X, dtype="float8_e5m2", scale=2.0, save_y_row_scale=True)),
    ("accuracy: expected 'fused', the default, where y is not of float8_e4m3fn or float8_e5m2, got 'compatible'",
     lambda: clnorm.rms_norm(X, accuracy="compatible")),
    ("accuracy: expected one of 'fused', 'compatible', got 'coat'",
     lambda: clnorm.rms_norm(X, dtype="float8_e5m2", accuracy="coat")),
    ("scale_dtype: expected none where y is not of .*, got 'float32'", lambda: clnorm.rms_norm(X, scale_dtype="float32")),
    ("scale_dtype: expected none where y is not of", lambda: clnorm.group_norm(X, 4, scale_dtype="float32")),
    ("scale_dtype: expected float32 or bfloat16, got float16", lambda: clnorm.quantize(X, scale_dtype="float16")),
    ("scale_dtype: expected None with a scale of 2.0", lambda: clnorm.quantize(X, scale=2.0, scale_dtype="bfloat16")),
    ("rstd: expected the forward's rstd with x_is_y", lambda: from_y(rstd=None)),
    ("mean is set: expected none with x_is_y", lambda: from_y(mean=RSTD)),
    ("residual is set: expected none with x_is_y", lambda: from_y(residual=X)),
    ("z is set: expected none with x_is_y", lambda: from_y(z=X)),
    ("activation is set: expected none with x_is_y", lambda: from_y(activation="gelu")),
    ("x_is_sum: expected False with x_is_y", lambda: from_y(x_is_sum=True)),
    ("save_y: expected False with x_is_y", lambda: from_y(save_y=True)),
    ("weight_bound: expected 0, the default, without x_is_y, got 0.5", lambda: from_y(x_is_y=False, weight_bound=0.5)),
    ("bias_bound: expected 0, the default, without x_is_y, got 0.5", lambda: from_y(x_is_y=False, bias_bound=0.5)),
    ("weight_bound is -1: expected 0, or", lambda: from_y(weight_bound=-1)),
    ("weight_bound: expected 0, the default, without weight, got 0.5", lambda: from_y(weight=None, weight_bound=0.5)),
    ("bias_bound: expected 0, the default, without bias, got 0.5", lambda: from_y(bias_bound=0.5)),
    ("x: expected a dtype of float32, float16, bfloat16, float64, got float8_e4m3fn",
     lambda: clnorm.layer_norm_backward(X, clnorm.quantize(X).q, rstd=RSTD, x_is_y=True)),
])
def test_what_is_refused(message, call):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


@pytest.mark.parametrize("message,call", [
    ("save_mask: expected True or False, got 1", lambda: clnorm.rms_norm(X, dropout=0.5, seed=1, save_mask=1)),
    ("save_amax: expected True or False, got 'yes'", lambda: clnorm.quantize(X, save_amax="yes")),
    ("save_y: expected True or False, got 1", lambda: clnorm.rms_norm_backward(X, X, save_y=1)),
    ("x_is_y: expected True or False, got 1", lambda: from_y(x_is_y=1)),
    ("weight_bound: expected a number, got 'a'", lambda: from_y(weight_bound="a")),
])
def test_options_of_another_type_are_type_errors(message, call):
    with pytest.raises(TypeError, match=f"^{message}"):
        call()
