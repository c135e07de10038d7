"""L2 norm, softmax, GELU and FP8 quantisation. An array is of NumPy, torch (CPU), pyopencl, or has __dlpack__."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple, Optional, Sequence

from clnorm._arrays import FLOATS_OF_8_BITS, Dlpack, dtype_name, optional_dtype
from clnorm._backends import backend_of_type
from clnorm._call import call, first, run
from clnorm._native import lib
from clnorm._record import COLUMNS, MATRIX, PLAIN, TRANSPOSED, WEIGHTS, Description, Operation, Output, fail
from clnorm._shapes import (
    SCALINGS,
    Seed,
    chosen,
    flag,
    groups_shape,
    input_scale,
    integer,
    number,
    numbers_of_seed,
    output_scale,
    real,
    same_shape,
    scale_shape,
    split,
    statistics,
    weight_map,
    wide_dtype,
    with_dx,
)

Array = Any
Result = Any  # an array, or an L2Norm
_EPS_MODES = {"add": lib.CLNORM_EPS_ADD, "floor": lib.CLNORM_EPS_FLOOR}
_GELU_FORMS = {"none": lib.CLNORM_GELU_ERF, "tanh": lib.CLNORM_GELU_TANH}


class L2Norm(NamedTuple):
    """y, and the length of each segment, of x's shape without the last dimension; with several segments (segments, …)."""

    y: Any
    norm: Any


class L2NormGradients(NamedTuple):
    """Gradients of l2_norm; dweight is None where it was not computed."""

    dx: Any
    dweight: Any = None


class Quantized(NamedTuple):
    """q in 8 bits, and its scales in float32 or scale_dtype: x is about q * scale."""

    q: Any
    scale: Any


class QuantizedTransposed(NamedTuple):
    """A `Quantized`, with a transposed copy of q, (columns, rows), and amax, the largest |x| of the elements that share a
    scale. A result that was not requested is None."""

    q: Any
    scale: Any
    q_transposed: Any = None
    amax: Any = None


_NARROW = 256  # columns; narrower arrays without gaps are passed as one row, whose columns are shared out


def _rows(tensors: dict, main: str, outputs, fields, kinds=None, constants=(), seeded=False) -> Description:
    """An operation on rows of the last dimension."""
    shape = tensors[main].shape
    lead = split(main, shape, 1)
    kinds = kinds or {role: MATRIX for role in tensors}
    rows = math.prod(shape[:lead])
    return Description(rows, shape[-1], lead, kinds, tuple(outputs), fields, seeded, constants)


def _of_any_shape(tensors: dict, main: str, output: str, argument: str, dtype, fields) -> Description:
    """An operation with one output. An array without elements may have no columns, and is passed as no rows of one column;
    one without dimensions is passed as one such row. argument: the option with the output's dtype."""
    shape = tensors[main].shape
    outputs = (Output(output, shape, wide_dtype(argument, dtype, tensors, main)),)
    if 0 in shape or not shape:
        return Description(int(not shape), 1, len(shape), {role: MATRIX for role in tensors}, outputs, fields)
    return _rows(tensors, main, outputs, fields)


def _describe_softmax(tensors, options):
    batch_invariant, dtype = options
    return _of_any_shape(tensors, "x", "y", "dtype", dtype, {"batch_invariant": batch_invariant})


def _describe_softmax_backward(tensors, options):
    same_shape(tensors, "y", "dy")
    batch_invariant, dtype = options
    return _of_any_shape(tensors, "y", "dx", "dx_dtype", dtype, {"batch_invariant": batch_invariant})


def _gelu(tensors, options, output, argument):
    approximate, dtype = options
    fields = {"form": chosen("approximate", approximate, _GELU_FORMS)}
    description = _of_any_shape(tensors, "x", output, argument, dtype, fields)
    return description._replace(any_shape=description.rows > 0 and description.cols < _NARROW)


def _describe_gelu(tensors, options):
    return _gelu(tensors, options, "y", "dtype")


def _describe_gelu_backward(tensors, options):
    same_shape(tensors, "x", "dy")
    return _gelu(tensors, options, "dx", "dx_dtype")


def _l2_norm_fields(tensors, options):
    eps, eps_mode, group_size, weight_repeat, batch_invariant = options[:5]
    shape = tensors["x"].shape
    weights = weight_map(tensors, math.prod(shape[:-1]), shape[-1:], weight_repeat)
    return weights | {"eps": eps, "eps_mode": chosen("eps_mode", eps_mode, _EPS_MODES), "group_size": group_size,
            "batch_invariant": batch_invariant}


def _l2_norm_weights(options):
    return COLUMNS if options[3] is None else WEIGHTS


def _l2_norm_kinds(tensors, options):
    others = {"weight": _l2_norm_weights(options), "norm": PLAIN}
    return {role: others.get(role, MATRIX) for role in tensors}


def _lengths_shape(tensors, options):
    shape = tensors["x"].shape
    split("x", shape, 1)
    return groups_shape(shape[:-1], shape[-1], options[2])


def _describe_l2_norm(tensors, options):
    x, (dtype, save_norm) = tensors["x"], options[5:]
    outputs = [Output("y", x.shape, wide_dtype("dtype", dtype, tensors))]
    if save_norm:
        outputs.append(Output("norm", _lengths_shape(tensors, options), real(x.dtype), PLAIN))
    fields = _l2_norm_fields(tensors, options) | {"save_norm": save_norm}
    return _rows(tensors, "x", outputs, fields, _l2_norm_kinds(tensors, options))


def _describe_l2_norm_backward(tensors, options):
    same_shape(tensors, "x", "dy")
    if "norm" in tensors:
        statistics(tensors, _lengths_shape(tensors, options))
    dtype, wanted = options[5:]
    outputs = [Output("dx", tensors["x"].shape, wide_dtype("dx_dtype", dtype, tensors))]
    if "dweight" in wanted:
        outputs.append(Output("dweight", tensors["weight"].shape, tensors["weight"].dtype, _l2_norm_weights(options)))
    fields = _l2_norm_fields(tensors, options) | {"norm_given": "norm" in tensors}
    return _rows(tensors, "x", outputs, fields, _l2_norm_kinds(tensors, options))


def _describe_quantize(tensors, options):
    dtype, scaling, group, scale, scale_dtype, stochastic, transposed, save_amax = options
    if dtype not in FLOATS_OF_8_BITS:
        fail("dtype", " or ".join(FLOATS_OF_8_BITS), dtype)
    chosen("scaling", scaling, SCALINGS)
    shape = tensors["x"].shape
    if tensors["x"].dtype == "float64":
        fail("x", "dtype float32, float16 or bfloat16", "float64")
    lead = split("x", shape, 1)
    fields, scales, constants = output_scale("q", shape, lead, dtype, scaling, group, scale, scale_dtype)
    outputs = [Output("q", shape, dtype)]
    if transposed:
        outputs.append(Output("q_t", (shape[-1], math.prod(shape[:-1])), dtype, TRANSPOSED))
    outputs += scales
    if save_amax:
        outputs.append(Output("amax", scale_shape(shape, lead, scaling, group), "float32", PLAIN))
    fields |= {"stochastic": stochastic, "save_amax": save_amax}
    return _rows(tensors, "x", outputs, fields, constants=constants, seeded=stochastic)


def _describe_dequantize(tensors, options):
    dtype, group = options
    shape = tensors["q"].shape
    if tensors["q"].dtype not in FLOATS_OF_8_BITS:
        fail("q", f"dtype {' or '.join(FLOATS_OF_8_BITS)}", tensors["q"].dtype)
    if dtype == "float64" or dtype in FLOATS_OF_8_BITS:
        fail("dtype", "float32, float16 or bfloat16", dtype)
    fields = input_scale("q", tensors, "scale", split("q", shape, 1), group)
    return _rows(tensors, "q", [Output("x", shape, dtype)], fields, {"q": MATRIX, "scale": PLAIN})


def _operation(name, describe, *inputs, codes=()):
    short = name.replace("_forward", "")
    desc = short if short in ("softmax", "gelu") else name
    return Operation(f"clnorm_{name}", f"clnorm_{desc}_desc", inputs, inputs, describe, codes)


_SOFTMAX = _operation("softmax_forward", _describe_softmax, "x")
_SOFTMAX_BACKWARD = _operation("softmax_backward", _describe_softmax_backward, "dy", "y")
_GELU = _operation("gelu_forward", _describe_gelu, "x")
_GELU_BACKWARD = _operation("gelu_backward", _describe_gelu_backward, "dy", "x")
_L2_NORM = _operation("l2_norm", _describe_l2_norm, "x", "weight")
_L2_NORM_BACKWARD = _operation("l2_norm_backward", _describe_l2_norm_backward, "dy", "x", "weight", "norm")
_QUANTIZE = _operation("quantize", _describe_quantize, "x")
_DEQUANTIZE = _operation("dequantize", _describe_dequantize, "q", "scale", codes=("q",))


def _last(x: Array, dim: int) -> bool:
    """Whether dim is the last dimension. An error where x has no such dimension, or cannot have its dimensions swapped."""
    shape = getattr(x, "shape", None)
    if shape is None:  # an array with DLPack alone, or an object that is refused later
        if not isinstance(dim, numbers.Integral) or isinstance(dim, bool) or dim != -1:
            fail("dim", f"-1, the last dimension, as {type(x).__name__} has no shape", repr(dim))
        return True
    shape = tuple(shape)
    count = max(len(shape), 1)  # an array without dimensions has one element, in dimension 0
    if not isinstance(dim, numbers.Integral) or isinstance(dim, bool) or not -count <= dim < count:
        fail("dim", f"a dimension of an array of shape {shape}", repr(dim))
    if dim % count == count - 1:
        return True
    if not hasattr(x, "swapaxes"):
        fail("dim", f"the last dimension, as {type(x).__name__} has no swapaxes", dim)
    return False


def _put(out, result):
    """Copies a result into the caller's array, where there is one."""
    if out is None:
        return result
    backend = backend_of_type(type(result))
    if backend_of_type(type(out)) is not backend:
        fail("out", f"{backend.kind}, as the input is", type(out))
    if tuple(out.shape) != tuple(result.shape) or out.dtype != result.dtype:
        fail("out", f"shape {tuple(result.shape)} and dtype {result.dtype}", f"{tuple(out.shape)} and {out.dtype}")
    if backend is not Dlpack:
        backend.layout("out", out)
        backend.check_output("out", out)
    out[...] = result
    return out


def softmax(x: Array, dim: int = -1, *, dtype: Any = None, batch_invariant: bool = False,
            out: Optional[Array] = None) -> Array:
    """exp(x - max(x)) / sum(exp(x - max(x))) over a dimension.

    x:      any shape, float32, float16, bfloat16 or float64. An element of -inf becomes exactly 0, in a row of -inf too.
    dim:    the dimension that adds up to 1. An array is copied where it is not the last one.
    dtype:  of y, of 16 bits or more; float64 where x has it, and only there. None: x's.
    out:    the array that y is written to; it may be x itself.
    batch_invariant:  a row's y has the same bits for any number of rows, which may take longer.

    Returns y as x is.
    """
    if _last(x, dim):
        options = (flag("batch_invariant", batch_invariant), optional_dtype("dtype", dtype))
        return call(_SOFTMAX, (x,), options, first(out))[0]
    y = softmax(x.swapaxes(dim, -1), dtype=dtype, batch_invariant=batch_invariant)
    return _put(out, y.swapaxes(dim, -1))


def softmax_backward(dy: Array, y: Array, dim: int = -1, *, dx_dtype: Any = None, batch_invariant: bool = False,
                     out: Optional[Array] = None) -> Array:
    """The gradient of softmax from its result: dx = y * (dy - sum(y * dy)).

    dy, y:     of one shape: the gradient of y, and y.  All others are as in softmax; out may be dy or y itself.
    dx_dtype:  of dx, as dtype in softmax. None: y's.
    Returns dx as y is.
    """
    if _last(y, dim):
        options = (flag("batch_invariant", batch_invariant), optional_dtype("dx_dtype", dx_dtype))
        return call(_SOFTMAX_BACKWARD, (dy, y), options, first(out))[0]
    if not hasattr(dy, "swapaxes"):
        fail("dy", "an array as y is", type(dy).__name__)
    same_shape({"y": y, "dy": dy}, "y", "dy")
    dx = softmax_backward(dy.swapaxes(dim, -1), y.swapaxes(dim, -1), dx_dtype=dx_dtype, batch_invariant=batch_invariant)
    return _put(out, dx.swapaxes(dim, -1))


def gelu(x: Array, approximate: str = "none", *, dtype: Any = None, out: Optional[Array] = None) -> Array:
    """Gaussian error linear units (Hendrycks, Gimpel 2016): x * Phi(x), element by element.

    x:            any shape, float32, float16, bfloat16 or float64.
    approximate:  "none" computes Phi by erf; "tanh": x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
    dtype:        of y, of 16 bits or more; float64 where x has it, and only there. None: x's.
    out:          the array that y is written to; it may be x itself.

    Returns y as x is.
    """
    return call(_GELU, (x,), (approximate, optional_dtype("dtype", dtype)), first(out))[0]


def gelu_backward(dy: Array, x: Array, approximate: str = "none", *, dx_dtype: Any = None,
                  out: Optional[Array] = None) -> Array:
    """The gradient of gelu: dx = dy * gelu'(x).

    dy, x:     of one shape: the gradient of y, and the forward's x.  approximate, out: as in gelu; out may be dy or x.
    dx_dtype:  of dx, as dtype in gelu. None: x's.
    Returns dx as x is.
    """
    return call(_GELU_BACKWARD, (dy, x), (approximate, optional_dtype("dx_dtype", dx_dtype)), first(out))[0]


def _repeat(weight_repeat):
    return None if weight_repeat is None else integer("weight_repeat", weight_repeat, 1)


def l2_norm(x: Array, weight: Optional[Array] = None, *, eps: float = 1e-12, eps_mode: str = "add", group_size: int = 0,
            weight_repeat: Optional[int] = None, dtype: Any = None, save_norm: bool = False,
            batch_invariant: bool = False, out: Optional[Array] = None) -> Result:
    """Divides each row by its length: y = x / length * weight.

    x:           (..., columns), float32, float16, bfloat16 or float64.
    weight:      (columns,), or with a weight_repeat (weight_rows, columns), where row r of x has the weights of row
                 (r // weight_repeat) % weight_rows. None: ones.
    eps_mode:    "add": length = sqrt(sum(x^2) + eps).  "floor": length = max(sqrt(sum(x^2)), eps), as PyTorch's normalize.
    group_size:  columns of a segment, a divisor of all columns; each segment has a length of its own. 0: the whole row.
    dtype:       of y, of 16 bits or more; float64 where x has it, and only there. None: x's.
    save_norm:   the result is an `L2Norm`, (y, norm).
    batch_invariant:  a row's results have the same bits for any number of rows, which may take longer.
    out:         the array that y is written to; it may be x itself.

    Returns y as x is; or an `L2Norm`.
    """
    options = (number("eps", eps), eps_mode, integer("group_size", group_size), _repeat(weight_repeat),
               flag("batch_invariant", batch_invariant), optional_dtype("dtype", dtype), flag("save_norm", save_norm))
    results = call(_L2_NORM, (x, weight), options, first(out))
    return L2Norm(*results) if save_norm else results[0]


def l2_norm_backward(dy: Array, x: Array, weight: Optional[Array] = None, *, eps: float = 1e-12, eps_mode: str = "add",
                     group_size: int = 0, weight_repeat: Optional[int] = None, norm: Optional[Array] = None,
                     dx_dtype: Any = None, batch_invariant: bool = False, needs: Optional[Sequence[str]] = None,
                     out: Optional[Array] = None) -> L2NormGradients:
    """The gradients of l2_norm.

    dy, x:     of one shape: the gradient of y, and the forward's x. All others are as in l2_norm.
    norm:      the lengths that the forward saved (save_norm=True); None: they are computed again.
    dx_dtype:  of dx, as dtype in l2_norm. None: x's.
    needs:     the gradients to compute, "dx" or "dx" and "dweight"; None: both where there is a weight.
    out:       the array that dx is written to, which may be dy or x.
    Returns an `L2NormGradients`: dx, and dweight where it was computed.
    """
    wanted = with_dx(needs, *(() if weight is None else ("dweight",)))
    options = (number("eps", eps), eps_mode, integer("group_size", group_size), _repeat(weight_repeat),
               flag("batch_invariant", batch_invariant), optional_dtype("dx_dtype", dx_dtype), wanted)
    return L2NormGradients(*call(_L2_NORM_BACKWARD, (dy, x, weight, norm), options, first(out)))


def quantize(x: Array, dtype: Any = "float8_e4m3fn", *, scaling: str = "tensor", scale_group: int = 0,
             scale: float = 0.0, scale_dtype: Any = None, stochastic_seed: Seed = None, transposed: bool = False,
             save_amax: bool = False, out: Optional[Array] = None) -> Any:
    """Quantises to 8 bits: scale = (max|x| + 1e-10) / largest of dtype, q = x / scale, rounded to nearest even.

    Infinities become the largest of dtype with their sign and NaNs stay NaN; neither counts in max|x|.

    x:                (..., columns), float32, float16 or bfloat16.
    dtype:            "float8_e4m3fn" (up to 448) or "float8_e5m2" (up to 57344), or such a dtype.
    scaling:          the elements that share a scale: the whole "tensor", a "row" or a "group" of scale_group columns.
    scale:            the scale of the tensor, and of the result. 0: it is measured.
    scale_dtype:      of measured scales: float32, the default, or bfloat16. x is divided by the rounded scale.
    stochastic_seed:  rounds up or down at random, with probabilities by distance; an integer, or (seed, offset), of 64
                      bits each.
    transposed:       the result has a transposed copy of q, (columns, rows).
    save_amax:        the result has max|x| of the elements that share a scale, in float32 and of the shape of scales.
    out:              the array that q is written to.

    Returns a `Quantized`: q of x's shape, scale of (1,), (...,) or (..., columns / scale_group rounded up). With transposed
    or save_amax it is a `QuantizedTransposed`.
    """
    stochastic = stochastic_seed is not None
    options = (dtype_name("dtype", dtype), scaling, integer("scale_group", scale_group), number("scale", scale),
               optional_dtype("scale_dtype", scale_dtype), stochastic, flag("transposed", transposed),
               flag("save_amax", save_amax))
    seed = numbers_of_seed("stochastic_seed", stochastic_seed) if stochastic else (0, 0)
    roles, results = run(_QUANTIZE, (x,), options, first(out), seed)
    named = dict(zip((*roles, "scale"), results))  # a given scale follows the outputs
    if transposed or save_amax:
        return QuantizedTransposed(named["q"], named["scale"], named.get("q_t"), named.get("amax"))
    return Quantized(named["q"], named["scale"])


def dequantize(q: Array, scale: Array, dtype: Any = "float32", *, scale_group: int = 0,
               out: Optional[Array] = None) -> Array:
    """x = q * scale in float32, rounded to dtype.

    q:      (..., columns) of float8_e4m3fn or float8_e5m2.
    scale:  float32 or bfloat16 of shape (1,), or (...,) for a scale a row; with scale_group (..., columns / scale_group).
    dtype:  of the result: float32, float16 or bfloat16.  out: the array that it is written to.
    """
    return call(_DEQUANTIZE, (q, scale), (dtype_name("dtype", dtype), integer("scale_group", scale_group)), first(out))[0]
