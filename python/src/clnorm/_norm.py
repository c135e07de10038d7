"""Layer norm and RMS norm, with the operations that are fused into them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from clnorm import _rope
from clnorm._arrays import FLOATS_OF_8_BITS, optional_dtype
from clnorm._call import first, first_and_sums, run
from clnorm._native import lib
from clnorm._record import COLUMNS, MATRIX, PLAIN, TRANSPOSED, WEIGHTS, Description, Operation, Output, fail
from clnorm._shapes import (
    ACTIVATIONS,
    GATES,
    chosen,
    dimensions,
    flag,
    groups_shape,
    input_scale,
    integer,
    names_of_gradients,
    needed,
    number,
    output_scale,
    real,
    result_dtype,
    same_shape,
    seed_pair,
    split,
    statistics,
    weight_map,
    wide_dtype,
)


class Norm(NamedTuple):
    """The results of a norm that returns more than y. A result that was not requested is None.

    y: as x.  residual_out: residual + dropout(x) in residual's dtype, the residual of the next layer.
    mean, rstd: the backward's statistics, of x's shape without the normalised dimensions; with several groups (groups, …).
    scale: the scales of an 8-bit y: y * scale is its value.  y_transposed: a transposed copy of y, (columns, rows).
    y_row_scale: the scale that each row of y would have with a scaling of "row".
    dropout_mask: of x's shape and bool: True where dropout kept an element of x.
    """

    y: Any
    residual_out: Any = None
    mean: Any = None
    rstd: Any = None
    scale: Any = None
    y_transposed: Any = None
    y_row_scale: Any = None
    dropout_mask: Any = None


class NormGradients(NamedTuple):
    """Gradients of a norm. A result that was not requested is None.

    y: the forward's y, computed again.  inexact_columns: with x_is_y, int32 of shape (1,): the number of columns whose x
    cannot be computed from y. Where it is not 0, all gradients are NaN.
    """

    dx: Any = None
    dweight: Any = None
    dbias: Any = None
    dz: Any = None
    dresidual: Any = None
    y: Any = None
    inexact_columns: Any = None


_FORWARD_INPUTS = ("x", "weight", "bias", "residual", "row_scale", "z", "x_scale")
_BACKWARD_INPUTS = ("dy", "x", "weight", "bias", "mean", "rstd", "residual", "row_scale", "z", "dresidual_out", "x_scale")


class _Common(NamedTuple):
    """Options of both forward and backward. rope: (style, repeat) or None."""

    dimensions: Any
    eps: float
    group_size: int
    weight_offset: float
    activation: Any
    gate: Any
    gate_first: bool
    dropout: float
    weight_repeat: Any
    rope: Any
    x_scale_group: int
    batch_invariant: bool


def _read_common(inputs, normalized_shape, eps, group_size, weight_offset, activation, gate, gate_first, dropout,
                 weight_repeat, rope, x_scale_group, batch_invariant) -> _Common:
    return _Common(
        dimensions(normalized_shape, inputs["weight"], weight_repeat), number("eps", eps),
        integer("group_size", group_size), number("weight_offset", weight_offset), activation, gate,
        flag("gate_first", gate_first),
        dropout, None if weight_repeat is None else integer("weight_repeat", weight_repeat, 1), rope,
        integer("x_scale_group", x_scale_group), flag("batch_invariant", batch_invariant),
    )


class _Results(NamedTuple):
    """Options of the forward's results."""

    dtype: Any
    scaling: Any
    scale_group: int
    scale: float
    scale_dtype: Any
    accuracy: Any
    save_stats: bool
    y_transposed: bool
    save_y_row_scale: bool
    save_mask: bool


def _read_forward(inputs, options) -> tuple:
    (name, dtype, scaling, scale_group, scale, scale_dtype, accuracy, save_stats, y_transposed, save_y_row_scale, save_mask,
     *common) = options
    return (
        name, _read_common(dict(zip(_FORWARD_INPUTS, inputs)), *common),
        _Results(optional_dtype("dtype", dtype), scaling, integer("scale_group", scale_group), number("scale", scale),
                 optional_dtype("scale_dtype", scale_dtype), accuracy, flag("save_stats", save_stats),
                 flag("y_transposed", y_transposed), flag("save_y_row_scale", save_y_row_scale),
                 flag("save_mask", save_mask)),
    )


def _read_backward(inputs, options) -> tuple:
    name, x_is_sum, needs, dx_dtype, accumulate, save_y, bounds, *common = options
    common = _read_common(dict(zip(_BACKWARD_INPUTS, inputs)), *common)
    dx_dtype = optional_dtype("dx_dtype", dx_dtype)
    return name, common, flag("x_is_sum", x_is_sum), needs, dx_dtype, accumulate, flag("save_y", save_y), bounds


def _check(tensors, lead):
    """Checks the inputs of both forward and backward."""
    x = tensors["x"]
    same_shape(tensors, "x", "z", "residual", "dy", "dresidual_out")
    rows = tuple(x.shape[:lead])
    if "row_scale" in tensors and tensors["row_scale"].shape not in (rows, (math.prod(rows),)):
        fail("row_scale", f"shape {rows}, a factor for each row", tensors["row_scale"].shape)
    if "row_scale" in tensors and tensors["row_scale"].dtype != real(x.dtype):
        fail("row_scale", f"dtype {real(x.dtype)}", tensors["row_scale"].dtype)


def _fused(tensors, norm, lead, common):
    """The fields of both descriptors, forward and backward."""
    shape, has_gate = tensors["x"].shape, "z" in tensors
    gate = chosen("gate", common.gate, GATES)
    if not has_gate and common.gate_first:
        fail("gate_first", "False without a z")
    if not has_gate and common.gate != "silu":
        fail("gate", "'silu', the default, without a z", repr(common.gate))
    weights = weight_map(tensors, math.prod(shape[:lead]), shape[lead:], common.weight_repeat)
    return weights | _rope.fields(tensors, shape, lead, common.group_size, common.rope) | {
        "norm": norm,
        "eps": common.eps,
        "group_size": common.group_size,
        "weight_offset": common.weight_offset,
        "activation": chosen("activation", common.activation, ACTIVATIONS),
        "gate": gate * has_gate,
        "gate_first": common.gate_first,
        "dropout": common.dropout,
        "row_scale": "row_scale" in tensors,
        "batch_invariant": common.batch_invariant,
    }


def _statistics_shape(shape, lead, group_size):
    return groups_shape(shape[:lead], math.prod(shape[lead:]), group_size)


def _kind_of_weights(fields):
    return WEIGHTS if "weight_rows" in fields else COLUMNS


def _kinds(tensors, weights):
    kinds = dict.fromkeys(("x", "z", "residual", "dy", "dresidual_out"), MATRIX)
    kinds |= dict.fromkeys(("weight", "bias"), weights) | dict.fromkeys(("row_scale", "mean", "rstd", "x_scale"), PLAIN)
    kinds |= _rope.KINDS
    return {role: kind for role, kind in kinds.items() if role in tensors}


_ACCURACIES = {"fused": lib.CLNORM_FP8_FUSED, "compatible": lib.CLNORM_FP8_COMPATIBLE}


def _output_scale(tensors, lead, dtype, options):
    """output_scale of y."""
    accuracy = chosen("accuracy", options.accuracy, _ACCURACIES)
    if accuracy and dtype not in FLOATS_OF_8_BITS:
        fail("accuracy", f"'fused', the default, where y is not of {' or '.join(FLOATS_OF_8_BITS)}", repr(options.accuracy))
    default = "bfloat16" if accuracy == lib.CLNORM_FP8_COMPATIBLE else "float32"
    fields, scales, constants = output_scale("y", tensors["x"].shape, lead, dtype, options.scaling, options.scale_group,
                                             options.scale, options.scale_dtype, default)
    if options.save_y_row_scale:
        rows = tensors["x"].shape[:lead]
        if not scales or options.scaling not in (None, "tensor"):
            fail("save_y_row_scale", "False without one measured scale of y")
        scales = (Output("y_row_scale", rows, scales[0].dtype, PLAIN), *scales)
    return fields | {"accuracy": accuracy, "save_y_row_scale": options.save_y_row_scale}, scales, constants


def _describe_forward(norm):
    def describe(tensors, options) -> Description:
        _, common, results = options
        x, group_size = tensors["x"], common.group_size
        lead = split("x", x.shape, common.dimensions)
        _check(tensors, lead)
        dtype = result_dtype("dtype", results.dtype or x.dtype, x.dtype)
        fields = _fused(tensors, norm, lead, common)
        fields |= input_scale("x", tensors, "x_scale", lead, common.x_scale_group)
        scale_fields, scales, constants = _output_scale(tensors, lead, dtype, results)
        fields |= scale_fields
        outputs = [Output("y", x.shape, dtype)]
        if "residual" in tensors:
            outputs.append(Output("residual_out", x.shape, tensors["residual"].dtype))
        if results.save_stats:
            shape, is_layer_norm = _statistics_shape(x.shape, lead, group_size), norm == lib.CLNORM_LAYER_NORM
            fields |= {"save_mean": is_layer_norm, "save_rstd": 1}
            outputs += [Output(name, shape, real(x.dtype), PLAIN) for name in ("mean", "rstd")[not is_layer_norm:]]
        rows, cols = math.prod(x.shape[:lead]), math.prod(x.shape[lead:])
        if results.save_mask:
            if not common.dropout:
                fail("save_mask", "False without dropout")
            fields["save_mask"] = True
            outputs.append(Output("dropout_mask", x.shape, "bool", PLAIN))
        if results.y_transposed:
            if dtype not in FLOATS_OF_8_BITS:
                fail("y_transposed", f"False where y is not of {' or '.join(FLOATS_OF_8_BITS)}")
            outputs.append(Output("y_t", (cols, rows), dtype, TRANSPOSED))
        outputs += scales
        kinds = _kinds(tensors, _kind_of_weights(fields))
        return Description(rows, cols, lead, kinds, tuple(outputs), fields, common.dropout > 0, constants)

    return describe


def _wanted(tensors, options_needs, x_is_sum):
    """The gradients to compute, in NormGradients' order."""
    possible = {
        "dx": True, "dweight": "weight" in tensors, "dbias": "bias" in tensors, "dz": "z" in tensors,
        "dresidual": "residual" in tensors or x_is_sum,
    }
    return needed(options_needs, [name for name, there in possible.items() if there])


def _describe_backward(norm):
    def describe(tensors, options) -> Description:
        _, common, x_is_sum, needs, dx_dtype, accumulate, save_y, bounds = options
        x = tensors["x"]
        lead = split("x", x.shape, common.dimensions)
        _check(tensors, lead)
        if bounds is not None and "rstd" not in tensors:
            fail("rstd", "the forward's rstd with x_is_y")
        for argument, value in (("x_is_sum", x_is_sum), ("save_y", save_y)):
            if bounds is not None and value:
                fail(argument, "False with x_is_y")
        if norm == lib.CLNORM_LAYER_NORM and bounds is None and ("mean" in tensors) != ("rstd" in tensors):
            fail("mean" if "rstd" in tensors else "rstd", "mean and rstd, or neither")
        if x_is_sum and "residual" in tensors:
            fail("residual", "None with x_is_sum, as x includes it")
        statistics(tensors, _statistics_shape(x.shape, lead, common.group_size))
        wanted = _wanted(tensors, needs, x_is_sum)
        if dx_dtype is not None and "dx" not in wanted:
            fail("dx_dtype", "None, as needs has no 'dx'", dx_dtype)
        fields = _fused(tensors, norm, lead, common)
        fields |= {"s_given": x_is_sum, "mean_given": "mean" in tensors, "rstd_given": "rstd" in tensors}
        fields["accumulate"] = accumulate
        fields |= input_scale("x", tensors, "x_scale", lead, common.x_scale_group)
        like_x = wide_dtype("x", None, tensors)
        dtypes = {"dx": wide_dtype("dx_dtype", dx_dtype, tensors), "y": like_x}
        dtypes["dresidual"] = tensors["residual"].dtype if "residual" in tensors else like_x
        dtypes |= {f"d{role}": tensors[role].dtype for role in ("weight", "bias", "z") if role in tensors}
        weights = _kind_of_weights(fields)
        columns = {f"d{role}": tensors[role].shape for role in ("weight", "bias") if role in tensors}
        outputs = tuple(
            Output(name, columns[name], dtypes[name], weights, accumulate) if name in columns else
            Output(name, x.shape, dtypes[name])
            for name in (*wanted, *(("y",) if save_y else ()))
        )
        rows, cols = math.prod(x.shape[:lead]), math.prod(x.shape[lead:])
        return Description(rows, cols, lead, _kinds(tensors, weights), outputs, fields, common.dropout > 0)

    return describe


def _describe_backward_from_y(norm):
    """Of a backward whose x is the forward's y, which is the C library's y."""
    describe_backward = _describe_backward(norm)

    def describe(tensors, options) -> Description:
        described = describe_backward({"x" if role == "y" else role: tensor for role, tensor in tensors.items()}, options)
        weight_bound, bias_bound = options[-1]
        return described._replace(
            kinds={"y" if role == "x" else role: kind for role, kind in described.kinds.items()},
            outputs=(*described.outputs, Output("fault", (1,), "int32", PLAIN)),
            fields=described.fields | {"y_given": True, "weight_bound": weight_bound, "bias_bound": bias_bound},
        )

    return describe


_NO_ROPE = _rope.parts(None)
_NORMS = {"layer_norm": lib.CLNORM_LAYER_NORM, "rms_norm": lib.CLNORM_RMS_NORM}
_FORWARD = {
    name: Operation(
        "clnorm_norm_forward", "clnorm_norm_desc", _FORWARD_INPUTS + _rope.NAMES, _FORWARD_INPUTS + _rope.INPUTS,
        _describe_forward(norm), ("x",), _read_forward,
    )
    for name, norm in _NORMS.items()
}
_BACKWARD = {
    name: Operation(
        "clnorm_norm_backward", "clnorm_norm_backward_desc", _BACKWARD_INPUTS + _rope.NAMES,
        _BACKWARD_INPUTS + _rope.INPUTS, _describe_backward(norm), ("x",), _read_backward,
    )
    for name, norm in _NORMS.items()
}
_BACKWARD_FROM_Y = {
    name: operation._replace(
        roles=tuple(["y" if role == "x" else role for role in operation.roles]), codes=(),
        describe=_describe_backward_from_y(_NORMS[name]),
    )
    for name, operation in _BACKWARD.items()
}
_ROLES = ("y", "residual_out", "mean", "rstd", "y_scale", "y_t", "y_row_scale", "dropout_mask")  # in the order of Norm


def norm_forward(name, x, weight, bias, normalized_shape, eps, group_size, residual, row_scale, z, gate, gate_first,
                 activation, dropout, seed, weight_offset, weight_repeat, rope, x_scale, x_scale_group, dtype, scaling,
                 scale_group, scale, scale_dtype, accuracy, save_stats, y_transposed, save_y_row_scale, save_mask,
                 batch_invariant, out):
    """layer_norm and rms_norm."""
    tables, rope = _NO_ROPE if rope is None else _rope.parts(rope)
    dropout = number("dropout", dropout)
    options = (name, dtype, scaling, scale_group, scale, scale_dtype, accuracy, save_stats, y_transposed, save_y_row_scale,
               save_mask, normalized_shape, eps, group_size, weight_offset, activation, gate, gate_first, dropout,
               weight_repeat, rope, x_scale_group, batch_invariant)
    pair = seed_pair(dropout, seed)
    inputs = (x, weight, bias, residual, row_scale, z, x_scale, *tables)
    roles, results = run(_FORWARD[name], inputs, options, () if out is None else first(out), pair)
    if len(results) == 1 and scaling is None and dtype is None:
        return results[0]
    named = dict(zip((*roles, "y_scale"), results))  # a given scale follows the outputs
    return Norm(*map(named.get, _ROLES))


def norm_backward(name, dy, x, weight, bias, mean, rstd, normalized_shape, eps, group_size, residual, dresidual_out,
                  x_is_sum, x_is_y, weight_bound, bias_bound, row_scale, z, gate, gate_first, activation, dropout, seed,
                  weight_offset, weight_repeat, rope, x_scale, x_scale_group, dx_dtype, needs, save_y, dweight, dbias,
                  batch_invariant, out):
    """layer_norm_backward and rms_norm_backward."""
    tables, rope = _rope.parts(rope)
    dropout = number("dropout", dropout)
    needs = names_of_gradients(needs)
    sums = {name: array for name, array in (("dweight", dweight), ("dbias", dbias)) if array is not None}
    bounds = number("weight_bound", weight_bound), number("bias_bound", bias_bound)
    for argument, bound, array in zip(("weight_bound", "bias_bound"), bounds, (weight, bias)):
        if bound and (not x_is_y or array is None):
            fail(argument, f"0, the default, without {'x_is_y' if not x_is_y else argument.removesuffix('_bound')}", bound)
    options = (name, x_is_sum, needs, dx_dtype, bool(sums), save_y, bounds if flag("x_is_y", x_is_y) else None,
               normalized_shape, eps, group_size, weight_offset, activation, gate, gate_first, dropout, weight_repeat, rope,
               x_scale_group, batch_invariant)
    inputs = (dy, x, weight, bias, mean, rstd, residual, row_scale, z, dresidual_out, x_scale, *tables)
    outs = first(out)
    if sums:
        present = {"weight": weight, "bias": bias, "z": z, "residual": residual}
        wanted = _wanted([role for role, array in present.items() if array is not None], needs, x_is_sum)
        outs = first_and_sums(out, wanted, sums)
    operation = (_BACKWARD_FROM_Y if x_is_y else _BACKWARD)[name]
    names, results = run(operation, inputs, options, outs, seed_pair(dropout, seed))
    named = dict(zip(names, results))
    inexact_columns = named.pop("fault", None)
    return NormGradients(**named, inexact_columns=inexact_columns)
