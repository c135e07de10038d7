"""Layer norm and RMS norm, with what is fused into them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from clnorm import _rope
from clnorm._arrays import FLOATS_OF_8_BITS, dtype_name
from clnorm._call import COLUMNS, MATRIX, PLAIN, WEIGHTS, Description, Operation, Output, call, fail
from clnorm._native import lib
from clnorm._shapes import (
    ACTIVATIONS,
    GATES,
    chosen,
    dimensions,
    input_scale,
    integer,
    number,
    output_scale,
    real,
    same_shape,
    seed_pair,
    split,
    statistics,
    weight_map,
)


class Norm(NamedTuple):
    """What a norm gives where more than y was asked for; None where something was not.

    y: as x.  residual_out: residual + dropout(x) in residual's dtype, which the next layer takes as its residual.
    mean, rstd: statistics for the backward, x's shape without the normalised dimensions; with group_size (groups, …).
    scale: of an 8-bit y, with which it is multiplied to be read.
    """

    y: Any
    residual_out: Any = None
    mean: Any = None
    rstd: Any = None
    scale: Any = None


class NormGradients(NamedTuple):
    """Gradients of a norm; None where one was not asked for."""

    dx: Any = None
    dweight: Any = None
    dbias: Any = None
    dz: Any = None
    dresidual: Any = None


_FORWARD_INPUTS = ("x", "weight", "bias", "residual", "row_scale", "z", "x_scale")
_BACKWARD_INPUTS = ("dy", "x", "weight", "bias", "mean", "rstd", "residual", "row_scale", "z", "dresidual_out", "x_scale")


class _Common(NamedTuple):
    """Options that forward and backward both have. rope: (style, repeat) or None."""

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


def _common(normalized_shape, weight, eps, group_size, weight_offset, activation, gate, gate_first, dropout, weight_repeat,
            rope, x_scale_group):
    return _Common(
        dimensions(normalized_shape, weight, weight_repeat), number("eps", eps), integer("group_size", group_size),
        number("weight_offset", weight_offset), activation, gate, bool(gate_first), number("dropout", dropout),
        None if weight_repeat is None else integer("weight_repeat", weight_repeat, 1), rope,
        integer("x_scale_group", x_scale_group),
    )


def _check(tensors, lead):
    """The inputs that forward and backward both have."""
    x = tensors["x"]
    same_shape(tensors, "x", "z", "residual", "dy", "dresidual_out")
    if "row_scale" in tensors and math.prod(tensors["row_scale"].shape) != math.prod(x.shape[:lead]):
        fail("row_scale", f"shape {x.shape[:lead]}, a factor for each row", tensors["row_scale"].shape)
    if "row_scale" in tensors and tensors["row_scale"].dtype != real(x.dtype):
        fail("row_scale", f"dtype {real(x.dtype)}", tensors["row_scale"].dtype)


def _fused(tensors, norm, lead, common):
    """The fields that forward and backward both have."""
    shape, has_gate = tensors["x"].shape, "z" in tensors
    weights = weight_map(tensors, math.prod(shape[:lead]), shape[lead:], common.weight_repeat)
    return weights | _rope.fields(tensors, shape, lead, common.group_size, common.rope) | {
        "norm": norm,
        "eps": common.eps,
        "group_size": common.group_size,
        "weight_offset": common.weight_offset,
        "activation": chosen("activation", common.activation, ACTIVATIONS),
        "gate": chosen("gate", common.gate, GATES) * has_gate,
        "gate_first": bool(common.gate_first and has_gate),
        "dropout": common.dropout,
        "row_scale": "row_scale" in tensors,
    }


def _statistics_shape(shape, lead, group_size):
    cols = math.prod(shape[lead:])
    groups = max(cols // group_size, 1) if group_size else 1
    return tuple(shape[:lead]) if groups == 1 else (groups, *shape[:lead])


def _kind_of_weights(fields):
    return WEIGHTS if "weight_rows" in fields else COLUMNS


def _kinds(tensors, weights):
    kinds = dict.fromkeys(("x", "z", "residual", "dy", "dresidual_out"), MATRIX)
    kinds |= dict.fromkeys(("weight", "bias"), weights) | dict.fromkeys(("row_scale", "mean", "rstd", "x_scale"), PLAIN)
    kinds |= _rope.KINDS
    return {role: kind for role, kind in kinds.items() if role in tensors}


def _describe_forward(norm):
    def describe(tensors, options) -> Description:
        _, common, dtype, scaling, scale_group, scale, save_stats = options
        x, group_size = tensors["x"], common.group_size
        lead = split("x", x.shape, common.dimensions)
        _check(tensors, lead)
        dtype = dtype or x.dtype
        fields = _fused(tensors, norm, lead, common)
        fields |= input_scale("x", tensors, "x_scale", lead, common.x_scale_group)
        scale_fields, scales = output_scale("y", x.shape, lead, dtype, scaling, scale_group, scale)
        fields |= scale_fields
        outputs = [Output("y", x.shape, dtype)]
        if "residual" in tensors:
            outputs.append(Output("residual_out", x.shape, tensors["residual"].dtype))
        if save_stats:
            shape, is_layer_norm = _statistics_shape(x.shape, lead, group_size), norm == lib.CLNORM_LAYER_NORM
            fields |= {"save_mean": is_layer_norm, "save_rstd": 1}
            outputs += [Output(name, shape, real(x.dtype), PLAIN) for name in ("mean", "rstd")[not is_layer_norm:]]
        if scales is not None:
            outputs.append(Output("y_scale", scales, "float32", PLAIN))
        rows, cols = math.prod(x.shape[:lead]), math.prod(x.shape[lead:])
        kinds = _kinds(tensors, _kind_of_weights(fields))
        return Description(rows, cols, lead, kinds, tuple(outputs), fields, common.dropout > 0)

    return describe


def _wanted(tensors, options_needs, x_is_sum):
    """The gradients to compute, in NormGradients' order."""
    possible = {
        "dx": True, "dweight": "weight" in tensors, "dbias": "bias" in tensors, "dz": "z" in tensors,
        "dresidual": "residual" in tensors or x_is_sum,
    }
    if options_needs is not None and not options_needs:
        fail("needs", "a gradient at least")
    if options_needs is None:
        return [name for name, there in possible.items() if there]
    for name in options_needs:
        if not possible.get(name):
            there = [word for word, is_there in possible.items() if is_there]
            fail("needs", f"names of {', '.join(there)}", repr(name))
    return [name for name in possible if name in options_needs]


def _describe_backward(norm):
    def describe(tensors, options) -> Description:
        _, common, x_is_sum, needs, dx_dtype = options
        x = tensors["x"]
        lead = split("x", x.shape, common.dimensions)
        _check(tensors, lead)
        if norm == lib.CLNORM_LAYER_NORM and ("mean" in tensors) != ("rstd" in tensors):
            fail("mean", "mean and rstd, or neither")
        statistics(tensors, _statistics_shape(x.shape, lead, common.group_size))
        wanted = _wanted(tensors, needs, x_is_sum)
        fields = _fused(tensors, norm, lead, common)
        fields |= {"s_given": x_is_sum, "mean_given": "mean" in tensors, "rstd_given": "rstd" in tensors}
        fields |= input_scale("x", tensors, "x_scale", lead, common.x_scale_group)
        like_x = tensors["dy"].dtype if x.dtype in FLOATS_OF_8_BITS else x.dtype
        dtypes = {"dx": dx_dtype or like_x, "dresidual": tensors["residual"].dtype if "residual" in tensors else like_x}
        dtypes |= {f"d{role}": tensors[role].dtype for role in ("weight", "bias", "z") if role in tensors}
        weights = _kind_of_weights(fields)
        columns = {f"d{role}": tensors[role].shape for role in ("weight", "bias") if role in tensors}
        outputs = tuple(
            Output(name, columns.get(name, x.shape), dtypes[name], weights if name in columns else MATRIX)
            for name in wanted
        )
        rows, cols = math.prod(x.shape[:lead]), math.prod(x.shape[lead:])
        return Description(rows, cols, lead, _kinds(tensors, weights), outputs, fields, common.dropout > 0)

    return describe


_NORMS = {"layer_norm": lib.CLNORM_LAYER_NORM, "rms_norm": lib.CLNORM_RMS_NORM}
_FORWARD = {
    name: Operation(
        "clnorm_norm_forward", "clnorm_norm_desc", _FORWARD_INPUTS + _rope.NAMES, _FORWARD_INPUTS + _rope.INPUTS,
        _describe_forward(norm),
    )
    for name, norm in _NORMS.items()
}
_BACKWARD = {
    name: Operation(
        "clnorm_norm_backward", "clnorm_norm_backward_desc", _BACKWARD_INPUTS + _rope.NAMES,
        _BACKWARD_INPUTS + _rope.INPUTS, _describe_backward(norm),
    )
    for name, norm in _NORMS.items()
}


def norm_forward(name, x, weight, bias, *, normalized_shape=None, eps=1e-5, group_size=0, residual=None, row_scale=None,
                 z=None, gate="silu", gate_first=False, activation=None, dropout=0.0, seed=None, weight_offset=0.0,
                 weight_repeat=None, rope=None, x_scale=None, x_scale_group=0, dtype=None, scaling=None, scale_group=0,
                 scale=0.0, save_stats=False, out=None, backend=None):
    """layer_norm and rms_norm. backend: one that has checked the arrays already."""
    tables, rope = _rope.parts(rope)
    common = _common(normalized_shape, weight, eps, group_size, weight_offset, activation, gate, gate_first, dropout,
                     weight_repeat, rope, x_scale_group)
    options = (name, common, None if dtype is None else dtype_name("dtype", dtype), scaling,
               integer("scale_group", scale_group), number("scale", scale), bool(save_stats))
    results = iter(call(_FORWARD[name], (x, weight, bias, residual, row_scale, z, x_scale, *tables), options, out,
                        seed_pair(common.dropout, seed), backend))
    y = next(results)
    if residual is None and not save_stats and scaling is None and dtype is None:
        return y
    return Norm(
        y,
        None if residual is None else next(results),
        next(results) if save_stats and name == "layer_norm" else None,
        next(results) if save_stats else None,
        next(results, None),
    )


def norm_backward(name, dy, x, weight, bias, *, mean=None, rstd=None, normalized_shape=None, eps=1e-5, group_size=0,
                  residual=None, dresidual_out=None, x_is_sum=False, row_scale=None, z=None, gate="silu",
                  gate_first=False, activation=None, dropout=0.0, seed=None, weight_offset=0.0, weight_repeat=None,
                  rope=None, x_scale=None, x_scale_group=0, dx_dtype=None, needs=None, out=None, backend=None):
    """layer_norm_backward and rms_norm_backward. backend: one that has checked the arrays already."""
    tables, rope = _rope.parts(rope)
    common = _common(normalized_shape, weight, eps, group_size, weight_offset, activation, gate, gate_first, dropout,
                     weight_repeat, rope, x_scale_group)
    if needs is not None and (isinstance(needs, str) or not hasattr(needs, "__iter__")):
        fail("needs", "names of gradients in a tuple or list", repr(needs))
    needs = None if needs is None else tuple(needs)
    options = (name, common, bool(x_is_sum), needs, None if dx_dtype is None else dtype_name("dx_dtype", dx_dtype))
    present = {"weight": weight, "bias": bias, "z": z, "residual": residual}
    wanted = _wanted({role for role, array in present.items() if array is not None}, needs, x_is_sum)
    inputs = (dy, x, weight, bias, mean, rstd, residual, row_scale, z, dresidual_out, x_scale, *tables)
    results = call(_BACKWARD[name], inputs, options, out, seed_pair(common.dropout, seed), backend)
    return NormGradients(**dict(zip(wanted, results)))
