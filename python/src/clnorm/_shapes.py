"""Parts that descriptions of operations share: shapes of rows and columns, checks of arguments, scales of 8-bit tensors."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Sequence, Union

import numpy

from clnorm._arrays import DTYPES, FLOATS_OF_8_BITS
from clnorm._native import lib
from clnorm._record import PLAIN, Output, fail

Seed = Union[int, Sequence[int], None]
SCALINGS = {"tensor": lib.CLNORM_SCALING_TENSOR, "row": lib.CLNORM_SCALING_ROW, "group": lib.CLNORM_SCALING_GROUP}
GATES = {"silu": lib.CLNORM_GATE_SILU, "sigmoid": lib.CLNORM_GATE_SIGMOID}
ACTIVATIONS = {
    None: lib.CLNORM_ACTIVATION_NONE,
    "gelu": lib.CLNORM_ACTIVATION_GELU,
    "gelu_tanh": lib.CLNORM_ACTIVATION_GELU_TANH,
    "silu": lib.CLNORM_ACTIVATION_SILU,
}


def chosen(argument: str, value, choices: dict):
    """The number of a word in `choices`."""
    if not isinstance(value, (str, type(None))) or value not in choices:
        words = ", ".join(repr(word) for word in choices)
        fail(argument, f"one of {words}", repr(value))
    return choices[value]


def number(argument: str, value) -> float:
    """An option as a float: an array could not be the key of a kept call, as its value may change."""
    if type(value) is float:
        return value
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        return float(value)
    except OverflowError:
        raise ValueError(f"{argument}: expected a number that float64 can hold") from None
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{argument}: expected a number, got {value!r}") from None


def integer(argument: str, value, least: int | None = 0) -> int:
    """An option as an int, for the same reason."""
    if type(value) is int:
        return value
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        kind = "an integer" if least is None else f"an integer, {least} or more"
        raise TypeError(f"{argument}: expected {kind}, got {value!r}") from None


def flag(argument: str, value) -> bool:
    """An option that is True or False."""
    if value is True or value is False:
        return value
    if not isinstance(value, numpy.bool_):
        raise TypeError(f"{argument}: expected True or False, got {value!r}")
    return bool(value)


def dimensions(normalized_shape, weight, weight_repeat=None) -> int | tuple:
    """The normalised dimensions: the tuple of sizes in normalized_shape, else the number of dimensions at the end, which is
    that of the weight. With a weight_repeat the weight's first dimension does not count."""
    if normalized_shape is None:
        count = len(getattr(weight, "shape", (0,))) if weight is not None else 1
        return max(count - (weight is not None and weight_repeat is not None), 1)
    return sizes(normalized_shape)


def sizes(normalized_shape) -> tuple:
    """A normalized_shape that is not absent, as a tuple of int."""
    if isinstance(normalized_shape, (tuple, list)):
        return tuple([integer("normalized_shape", size) for size in normalized_shape])
    if isinstance(normalized_shape, numbers.Integral):
        return (integer("normalized_shape", normalized_shape),)
    fail("normalized_shape", "an integer, or a tuple or list of integers", repr(normalized_shape))


def split(argument: str, shape: tuple, normalized: int | tuple):
    """The number of leading dimensions that are rows."""
    count = normalized if isinstance(normalized, int) else len(normalized)
    if count < 1 or count > len(shape):
        fail("normalized_shape" if count < 1 else argument, f"{max(count, 1)} or more dimensions", f"shape {shape}")
    lead = len(shape) - count
    if not isinstance(normalized, int) and tuple(shape[lead:]) != normalized:
        fail("normalized_shape", f"the last dimensions of {argument}, of shape {shape}", normalized)
    if 0 in shape[lead:]:
        fail(argument, "at least one column", f"shape {shape}")
    return lead


def same_shape(tensors: dict, like: str, *roles: str) -> None:
    """Checks that each of the roles that is present has the shape of another tensor."""
    for role in roles:
        if role in tensors and tensors[role].shape != tensors[like].shape:
            fail(role, f"the shape of {like}, {tensors[like].shape}", tensors[role].shape)


def statistics(tensors: dict, shape: tuple) -> None:
    """Checks that statistics have the shape and the dtype that the forward saves them in."""
    for role in ("mean", "rstd", "norm"):
        if role in tensors and tensors[role].shape != tuple(shape):
            fail(role, f"shape {tuple(shape)}", tensors[role].shape)
        if role in tensors and tensors[role].dtype != real(tensors["x"].dtype):
            fail(role, f"dtype {real(tensors['x'].dtype)}", tensors[role].dtype)


def columns_shape(tensors: dict, shape: tuple, *roles: str) -> None:
    """Checks that each of the roles that is present has the shape of the normalised dimensions, or that shape flattened."""
    for role in roles:
        if role in tensors and tensors[role].shape not in (shape, (math.prod(shape),)):
            fail(role, f"shape {shape}", tensors[role].shape)


def weight_map(tensors: dict, rows: int, shape: tuple, weight_repeat) -> dict:
    """The fields of weights of (weight_rows, *columns), which a weight_repeat declares them to be; {} without one."""
    if weight_repeat is None:
        columns_shape(tensors, shape, "weight", "bias")
        return {}
    present = [tensors[role].shape for role in ("weight", "bias") if role in tensors]
    if not present or not present[0]:
        fail("weight_repeat", f"a weight or bias of (weight_rows, {math.prod(shape)})")
    weight_rows = present[0][0]
    for role in ("weight", "bias"):
        if role in tensors and tensors[role].shape not in ((weight_rows, *shape), (weight_rows, math.prod(shape))):
            fail(role, f"shape {(weight_rows, *shape)}", tensors[role].shape)
    if weight_repeat < 1 or weight_rows < 1 or rows % (weight_rows * weight_repeat):
        fail("weight_repeat", f"a number that, times {weight_rows} rows of weights, divides {rows} rows", weight_repeat)
    return {"weight_rows": weight_rows, "weight_repeat": weight_repeat}


def groups_shape(shape: tuple, cols: int, group_size: int) -> tuple:
    """The shape of one number for each segment of each row: (*rows), or with several segments (segments, *rows)."""
    groups = max(cols // group_size, 1) if group_size else 1
    return tuple(shape) if groups == 1 else (groups, *shape)


def result_dtype(argument: str, dtype: str, x_dtype: str) -> str:
    """The dtype of a result, as an option names it: float64 if x has float64, and only then."""
    if (dtype == "float64") != (x_dtype == "float64"):
        fail(argument, f"{'' if x_dtype == 'float64' else 'no '}float64, as x has {x_dtype}", dtype)
    return dtype


def wide_dtype(argument: str, dtype: str | None, tensors: dict, main: str = "x") -> str:
    """The same for a result of 16 bits or more. None: the dtype of the main tensor, or dy's where that has 8 bits."""
    if dtype in FLOATS_OF_8_BITS:
        fail(argument, "a dtype of 16 bits or more", dtype)
    of_main = tensors[main].dtype
    return result_dtype(argument, dtype or (tensors["dy"].dtype if of_main in FLOATS_OF_8_BITS else of_main), of_main)


def real(dtype: str) -> str:
    """The dtype of statistics, which is that of the arithmetic."""
    return "float64" if dtype == "float64" else "float32"


def scale_shape(shape: tuple, lead: int, scaling: str, group: int, argument: str = "scale_group") -> tuple:
    """The shape of scales. argument: the name of `group`."""
    if scaling == "tensor":
        return (1,)
    if scaling == "row":
        return tuple(shape[:lead])
    cols = math.prod(shape[lead:])
    if group < 1:
        fail(argument, "the number of columns that share a scale", group)
    return (*shape[:lead], -(-cols // group))


def output_scale(role: str, shape: tuple, lead: int, dtype: str, scaling, group: int, scale: float,
                 scale_dtype: str | None = None, default: str = "float32"):
    """(the fields of an 8-bit output, the outputs for scales that are written, the scales that are given)."""
    if dtype not in FLOATS_OF_8_BITS:
        options = {"scaling": scaling, "scale_group": group or None, "scale": scale or None, "scale_dtype": scale_dtype}
        for argument, value in options.items():
            if value is not None:
                fail(argument, f"none where {role} is not of {' or '.join(FLOATS_OF_8_BITS)}", repr(value))
        return {}, (), ()
    if scale_dtype not in (None, "float32", "bfloat16"):
        fail("scale_dtype", "float32 or bfloat16", scale_dtype)
    if scale and scale_dtype is not None:
        fail("scale_dtype", f"None with a scale of {scale}, which is returned in float32", scale_dtype)
    scaling = "tensor" if scaling is None else scaling
    dtype_of_scales = scale_dtype or default
    fields = {f"{role}.scaling": chosen("scaling", scaling, SCALINGS), f"{role}.scale_dtype": DTYPES[dtype_of_scales]}
    shape_of_scales = scale_shape(shape, lead, scaling, group)
    if scaling == "group":
        fields[f"{role}.scale_group"] = group
    elif group:
        fail("scale_group", f"0 with a scaling of {scaling!r}", group)
    if not scale:
        scales = Output("scale" if role == "q" else f"{role}_scale", shape_of_scales, dtype_of_scales, PLAIN)
        return fields, (scales,), ()
    if scaling != "tensor":
        fail("scale", f"0 with a scaling of {scaling!r}, whose scales are measured", scale)
    fields[f"{role}.scale"] = scale
    return fields, (), (scale,)


def input_scale(role: str, tensors: dict, scale_role: str, lead: int, group: int) -> dict:
    """The fields of an 8-bit input: its scaling follows from the shape of its scales."""
    dtype = tensors[role].dtype
    if dtype not in FLOATS_OF_8_BITS:
        if scale_role in tensors:
            fail(scale_role, f"none where {role} is not of 8 bits", f"dtype {dtype}")
        if group:
            fail(f"{scale_role}_group", f"0 where {role} is not of 8 bits", group)
        return {}
    if scale_role not in tensors:
        fail(scale_role, f"the scales of {role}, which has 8 bits")
    scales, shape = tensors[scale_role], tensors[role].shape
    if scales.dtype not in ("float32", "bfloat16"):
        fail(scale_role, "dtype float32 or bfloat16", scales.dtype)
    fields = {f"{role}.scale_dtype": DTYPES[scales.dtype]}
    if group:
        expected = scale_shape(shape, lead, "group", group, f"{scale_role}_group")
        fields[f"{role}.scaling"] = SCALINGS["group"]
        fields[f"{role}.scale_group"] = group
    elif scales.shape in ((), (1,)) and scales.shape != tuple(shape[:lead]):
        expected, fields[f"{role}.scaling"] = scales.shape, SCALINGS["tensor"]
    else:
        expected, fields[f"{role}.scaling"] = tuple(shape[:lead]), SCALINGS["row"]
    if scales.shape != expected:
        fail(scale_role, f"shape (1,) or {expected}", scales.shape)
    return fields


def seed_pair(dropout: float, seed) -> tuple:
    """(seed, offset) of a call, each in 64 bits; a negative int64 counts as its bits."""
    if not 0 <= dropout < 1:
        fail("dropout", "0 or more and less than 1", dropout)
    if seed is None and not dropout:
        return (0, 0)
    return numbers_of_seed("seed", seed, f", as dropout is {dropout}" if seed is None else "")


def numbers_of_seed(argument: str, seed, reason: str = "") -> tuple:
    """(seed, offset) of an argument that is an integer or both."""
    pair = seed if isinstance(seed, (tuple, list)) else (seed,)
    expected = f"an integer, or (seed, offset){reason}"
    if seed is None or len(pair) not in (1, 2):
        fail(argument, expected, repr(seed))
    try:
        own, offset = (integer(argument, part, None) for part in (*pair, 0)[:2])
    except TypeError:
        raise TypeError(f"{argument}: expected {expected}, got {seed!r}") from None
    return (bits(argument, own), bits(argument, offset))


def names_of_gradients(needs) -> tuple | None:
    """A caller's names of gradients; None: all."""
    if needs is None:
        return None
    if isinstance(needs, str) or not hasattr(needs, "__iter__"):
        fail("needs", "names of gradients in a tuple or list", repr(needs))
    return tuple(needs)


def needed(needs: tuple | None, there: list) -> list:
    """The gradients to compute, of those that there are, in their order."""
    if needs is None:
        return there
    if not needs:
        fail("needs", "a gradient at least")
    for name in needs:
        if not (isinstance(name, str) and name in there):
            fail("needs", f"names of {', '.join(there)}", repr(name))
    return [name for name in there if name in needs]


def with_dx(needs, *sums: str) -> tuple:
    """The gradients to compute, of dx and sums. needs: a caller's names, among them dx, which is always computed."""
    names = names_of_gradients(needs)
    wanted = tuple(needed(names, ["dx", *sums]))
    if "dx" not in wanted:
        fail("needs", "'dx', which is always computed, among others", names)
    return wanted


def bits(argument: str, number: int) -> int:
    """The 64 bits of an int64 or uint64."""
    if not -(1 << 63) <= number < 1 << 64:
        fail(argument, "an integer of 64 bits", number)
    return number & ((1 << 64) - 1)
