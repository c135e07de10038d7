"""Arguments that are refused: each error names the argument and what was expected."""

import numpy
import pytest

import clnorm

X, NUMBER = numpy.ones((4, 8), "f4"), numpy.array(1, "f4")


@pytest.mark.parametrize("message,call", [
    ("x: expected a NumPy array", lambda: clnorm.layer_norm([1.0])),
    ("x: expected a dtype of float32", lambda: clnorm.layer_norm(X.astype("i4"))),
    ("x: expected a dtype of float32, .*, got void", lambda: clnorm.gelu(numpy.zeros((2, 2), "V0"))),
    ("x: expected at least one column", lambda: clnorm.layer_norm(X[:, :0])),
    ("weight: expected shape \\(8,\\), got \\(5,\\)", lambda: clnorm.layer_norm(X, X[0, :5])),
    ("weight: expected a NumPy array, as x is", lambda: clnorm.layer_norm(X, [1.0])),
    ("normalized_shape: expected the last", lambda: clnorm.layer_norm(X, normalized_shape=4)),
    ("residual: expected the shape of x", lambda: clnorm.layer_norm(X, residual=X[0])),
    ("activation: expected one of", lambda: clnorm.layer_norm(X, activation="relu")),
    (r"seed: expected an integer, or \(seed, offset\), as dropout is 0.1, got None",
     lambda: clnorm.layer_norm(X, dropout=0.1)),
    ("dropout: expected 0 or more and less than 1, got -0.1", lambda: clnorm.layer_norm(X, dropout=-0.1)),
    ("dropout: expected 0 or more and less than 1, got nan", lambda: clnorm.rms_norm(X, dropout=float("nan"), seed=1)),
    ("dropout: expected 0 or more and less than 1, got 2", lambda: clnorm.layer_norm_backward(X, X, dropout=2)),
    ("scaling: expected none where y is not of .*, got ''", lambda: clnorm.rms_norm(X, scaling="")),
    ("scaling: expected none where y is not of .*, got 0", lambda: clnorm.rms_norm(X, scaling=0)),
    ("x: expected 1 or more dimensions, got", lambda: clnorm.l2_norm(NUMBER, save_norm=True)),
    ("x: expected 1 or more dimensions, got", lambda: clnorm.norm_statistics(NUMBER)),
    ("x: expected 1 or more dimensions, got", lambda: clnorm.norm_backward_statistics(NUMBER, NUMBER, X[0, :3])),
    (r"x: expected shape \(samples, channels", lambda: clnorm.group_norm(NUMBER, 1, save_stats=True)),
    ("eps: expected a number that float64 can hold", lambda: clnorm.layer_norm(X, eps=10**400)),
    ("group_size: expected a smaller integer, got", lambda: clnorm.layer_norm(X, group_size=2**70)),
    ("scale_group: expected a smaller integer, got", lambda: clnorm.quantize(X, scaling="group", scale_group=2**33)),
    (r"x: expected shape \(samples, channels, \*positions\) with one channel", lambda: clnorm.group_norm(X[0], 1)),
    (r"x: expected shape \(samples, \*positions, channels\)", lambda: clnorm.group_norm(X[:, :0], 1, channels_last=True)),
    ("^eps is -1: expected", lambda: clnorm.layer_norm(X, eps=-1)),
    ("seed: expected an integer", lambda: clnorm.layer_norm(X, residual=X, dropout=0.1, seed=(1, 2, 3))),
    ("out: expected shape", lambda: clnorm.layer_norm(X, out=X[:2])),
    ("out: expected memory that does not overlap x", lambda: clnorm.layer_norm(X[:-1], out=X[1:])),
    ("needs: expected names of dx, got 'dz'", lambda: clnorm.layer_norm_backward(X, X, needs=["dz"])),
    ("needs: expected names of dx, dweight, dresidual, got 'dbias'",
     lambda: clnorm.group_norm_backward(X, X, 2, X[0], needs=["dbias"])),
    ("needs: expected 'dx', which is always computed, .*, got \\('dweight',\\)",
     lambda: clnorm.l2_norm_backward(X, X, X[0], needs=["dweight"])),
    ("needs: expected names of gradients in a tuple or list, got 'dx'", lambda: clnorm.l2_norm_backward(X, X, needs="dx")),
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
    ("x_scale_group: expected the number of columns that share a scale, got -1",
     lambda: clnorm.rms_norm(Q, x_scale=SCALE, x_scale_group=-1)),
    ("^scale_group: expected the number of columns that share a scale, got -1",
     lambda: clnorm.dequantize(Q, SCALE, scale_group=-1)),
    ("residual is set: expected none with gate_first", lambda: clnorm.rms_norm(X, z=X, gate_first=True, residual=X)),
    ("dropout is set: expected none with gate_first",
     lambda: clnorm.rms_norm(X, z=X, gate_first=True, dropout=0.1, seed=1)),
    ("row_scale is set: expected none with gate_first",
     lambda: clnorm.rms_norm(X, z=X, gate_first=True, row_scale=X[:, 0].copy())),
    ("x_is_sum is set: expected none with gate_first",
     lambda: clnorm.rms_norm_backward(X, X, z=X, gate_first=True, x_is_sum=True, needs=["dx"])),
    ("batch_invariant is 1: expected 0 with one measured scale of y", lambda: to_8_bits(batch_invariant=True)),
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
    (r"stochastic_seed: expected an integer, or \(seed, offset\), got \(1, 2, 3\)",
     lambda: clnorm.quantize(X, stochastic_seed=(1, 2, 3))),
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
    ("norm: expected a dtype of float64, as x has float64, got float32",
     lambda: clnorm.l2_norm_backward(D, D, norm=X[:, 0].copy())),
    (r"norm: expected shape \(\d+,\), got \(1,\)", lambda: clnorm.l2_norm_backward(X, X, norm=X[:1, 0].copy())),
    ("weight: expected a dtype of float32, float16, bfloat16, as x has float32, got float64",
     lambda: clnorm.group_norm(X, 2, D[0])),
    ("residual: expected a dtype of float32, float16, bfloat16, as x has float32", lambda: clnorm.rms_norm(X, residual=D)),
    ("dy: expected a dtype of float32, float16, bfloat16, as x has float32", lambda: clnorm.gelu_backward(D, X)),
    ("dy: expected a dtype of .*, as y has float32, got float64", lambda: clnorm.softmax_backward(D, X)),
    ("dy: expected a dtype of .*, got float8_e4m3fn", lambda: clnorm.rms_norm_backward(Q, X)),
    ("x: expected a dtype of .*, got float8_e4m3fn", lambda: clnorm.softmax(Q)),
    ("dtype: expected float64, as x has float64, got float16", lambda: clnorm.rms_norm(D, dtype="float16")),
    ("dtype: expected no float64, as x has float32", lambda: clnorm.group_norm(X, 2, dtype=float)),
    ("dx_dtype: expected no float64", lambda: clnorm.rms_norm_backward(X, X, dx_dtype="float64")),
    ("x: expected dtype float32, float16 or bfloat16, got float64", lambda: clnorm.quantize(D)),
    ("dtype: expected float32, float16 or bfloat16, got float64", lambda: clnorm.dequantize(Q, SCALE, "float64")),
    ("scale: expected dtype float32 or bfloat16, got float64", lambda: clnorm.dequantize(Q, SCALE.astype("f8"))),
])
def test_incompatible_dtypes_are_refused(message, call):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


@pytest.mark.parametrize("message,call", [
    ("eps: expected a number, got 'a'", lambda: clnorm.layer_norm(X, eps="a")),
    ("group_size: expected an integer, 0 or more, got -1", lambda: clnorm.layer_norm(X, group_size=-1)),
    ("scale: expected a number, got 'a'", lambda: clnorm.quantize(X, scale="a")),
    ("dropout: expected a number, got 'x'", lambda: clnorm.layer_norm(X, dropout="x", seed=1)),
    ("weight_offset: expected a number, got None", lambda: clnorm.rms_norm(X, weight_offset=None)),
    ("num_groups: expected an integer, 1 or more, got 2.0", lambda: clnorm.group_norm(X, 2.0)),
    (r"seed: expected an integer, or \(seed, offset\), got 'a'", lambda: clnorm.layer_norm(X, seed="a")),
    (r"seed: expected an integer, or \(seed, offset\), got 'one'",
     lambda: clnorm.layer_norm(X, residual=X, dropout=0.1, seed="one")),
    (r"stochastic_seed: expected an integer, or \(seed, offset\), got 1.5",
     lambda: clnorm.quantize(X, stochastic_seed=1.5)),
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


@pytest.mark.parametrize("function", [
    lambda n: clnorm.layer_norm(X, group_size=n),
    lambda n: clnorm.l2_norm(X, group_size=n),
    lambda n: clnorm.group_norm(X, n),
    lambda n: clnorm.quantize(X, scaling="group", scale_group=n),
    lambda n: clnorm.quantize(X, stochastic_seed=n),
])
def test_a_float_is_refused_after_a_call_with_an_equal_integer(function):
    function(4)
    function(numpy.int64(4))
    with pytest.raises(TypeError, match="expected an integer"):
        function(4.0)
