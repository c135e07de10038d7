"""torch.ops.clnorm: the operators behind clnorm.torch, with their shapes for tracing and their gradients."""

from __future__ import annotations

import math

import torch

from clnorm import _group_norm, _norm, elementwise, norms
from clnorm._arrays import DTYPES
from clnorm._rope import Rope
from clnorm._shapes import groups_shape, real
from clnorm._torch_dispatch import absent, define, define_gradient, differentiate

_OPTIONS = (
    "str kind, int[] normalized_shape, float eps, int group_size, float weight_offset, int? weight_repeat, "
    "str? activation, str gate, bool gate_first, float dropout, str rope_style, int rope_repeat, bool batch_invariant"
)
_TABLES = ("row_scale", "rope_cos", "rope_sin", "position", "seed")  # these have no gradients
_OTHERS = ", ".join(f"Tensor? {name}" for name in _TABLES) + ", " + _OPTIONS
_OTHER_NAMES = tuple(argument.split()[-1] for argument in _OTHERS.split(", "))

# ------------------------------------------------------------------------------------------------ layer norm, RMS norm


_NAMES = {getattr(torch, name): name for name in DTYPES}


def _real(dtype):
    return getattr(torch, real(str(dtype).removeprefix("torch.")))


def _keywords(others):
    """The kind of a norm, and the keyword arguments of its function."""
    named = dict(zip(_OTHER_NAMES, others))
    kind, seed, cos = named.pop("kind"), named["seed"], named.pop("rope_cos")
    rope = cos, named.pop("rope_sin"), named.pop("position"), named.pop("rope_style"), named.pop("rope_repeat")
    named["rope"] = None if cos is None else Rope(*rope)
    named["seed"] = None if seed is None else seed.tolist()
    named["normalized_shape"] = tuple(named["normalized_shape"])
    return kind, named


def _run_norm(x, weight, bias, residual, z, *others):
    kind, named = _keywords(others)
    function = getattr(norms, kind)
    result = function(x, weight, bias, residual=residual, z=z, save_stats=True, **named)
    return tuple(result[:4])


def _fake_norm(x, weight, bias, residual, z, *others):
    named = dict(zip(_OTHER_NAMES, others))
    lead = x.shape[: x.dim() - len(named["normalized_shape"])]
    shape = groups_shape(lead, math.prod(named["normalized_shape"]), named["group_size"])
    statistic = x.new_empty(shape, dtype=_real(x.dtype))
    return (
        x.new_empty(x.shape),
        absent(x) if residual is None else residual.new_empty(residual.shape),
        torch.empty_like(statistic) if named["kind"] == "layer_norm" else absent(x),
        statistic,
    )


def _run_norm_backward(dy, dresidual_out, s, weight, bias, z, mean, rstd, needs, dx_dtype, *others):
    kind, named = _keywords(others)
    names = [name for name, needed in zip(_norm.NormGradients._fields, needs) if needed]
    statistics = {"rstd": rstd} | ({"mean": mean} if kind == "layer_norm" else {})
    gradients = getattr(norms, f"{kind}_backward")(
        dy, s, weight, bias, z=z, dresidual_out=dresidual_out, x_is_sum=dresidual_out is not None,
        dx_dtype=_NAMES[dx_dtype] if needs[0] else None, needs=names, **statistics, **named,
    )
    return tuple(gradients[: len(needs)])


def _fake_norm_backward(dy, dresidual_out, s, weight, bias, z, mean, rstd, needs, dx_dtype, *others):
    like = (s.new_empty(s.shape, dtype=dx_dtype), weight, bias, z, s)
    return tuple(t.new_empty(t.shape) if needed else absent(dy) for t, needed in zip(like, needs))


def _save_norm(ctx, inputs, output):
    x, weight, bias, residual, z, *others = inputs
    _, residual_out, mean, rstd = output
    mean = rstd if mean is None else mean
    ctx.mark_non_differentiable(mean, rstd)
    s = x if residual is None else residual_out
    tables, ctx.options = others[: len(_TABLES)], others[len(_TABLES):]
    ctx.save_for_backward(s, weight, bias, z, mean, rstd, *tables)
    ctx.has_residual, ctx.dtype = residual is not None, x.dtype
    # The gradients of x and residual are the same tensor, unless x is scaled or dropped out, or has another dtype.
    row_scale, seed = tables[0], tables[-1]
    ctx.shared = ctx.has_residual and row_scale is None and seed is None and s.dtype == x.dtype


def _norm_gradients(ctx, dy, dresidual_out, dmean, drstd):
    s, weight, bias, z, mean, rstd, *tables = ctx.saved_tensors
    wants_x, wants_weight, wants_bias, wants_residual, wants_z = needed = ctx.needs_input_grad[:5]
    shared = ctx.shared
    wants = [wants_x or (shared and wants_residual), wants_weight, wants_bias, wants_z, wants_residual and not shared]
    none = (None,) * len(_OTHER_NAMES)
    if not any(wants):
        return (None,) * 5 + none
    dx, dweight, dbias, dz, dresidual = _norm_backward(
        dy, dresidual_out if ctx.has_residual else None, s, weight, bias, z, mean, rstd, wants, ctx.dtype, *tables,
        *ctx.options,
    )
    gradients = (dx, dweight, dbias, dx if shared else dresidual, dz)
    return (*[g if need else None for g, need in zip(gradients, needed)], *none)


define(
    "norm",
    f"(Tensor x, Tensor? weight, Tensor? bias, Tensor? residual, Tensor? z, {_OTHERS}) -> "
    "(Tensor y, Tensor residual_out, Tensor mean, Tensor rstd)",
    _run_norm, _fake_norm,
)
_norm_backward = define_gradient(
    "norm",
    "(Tensor dy, Tensor? dresidual_out, Tensor s, Tensor? weight, Tensor? bias, Tensor? z, Tensor mean, Tensor rstd, "
    f"bool[] needs, ScalarType dx_dtype, {_OTHERS}) -> "
    "(Tensor dx, Tensor dweight, Tensor dbias, Tensor dz, Tensor dresidual)",
    _run_norm_backward, _fake_norm_backward,
)
norm = differentiate("norm", _run_norm, _norm_gradients, _save_norm)

# ------------------------------------------------------------------------------------------------------------- softmax


def _like_first(first, *others):
    return first.new_empty(first.shape)


def _like_second(first, second, *others):
    return second.new_empty(second.shape)


def _run_softmax(x, batch_invariant):
    return elementwise.softmax(x, batch_invariant=batch_invariant)


def _run_softmax_backward(dy, y, batch_invariant):
    return elementwise.softmax_backward(dy, y, batch_invariant=batch_invariant)


def _save_softmax(ctx, inputs, output):
    ctx.save_for_backward(output)
    ctx.batch_invariant = inputs[1]


def _softmax_gradients(ctx, dy):
    return _softmax_backward(dy, *ctx.saved_tensors, ctx.batch_invariant), None


define("softmax", "(Tensor x, bool batch_invariant) -> Tensor", _run_softmax, _like_first)
_softmax_backward = define_gradient(
    "softmax", "(Tensor dy, Tensor y, bool batch_invariant) -> Tensor", _run_softmax_backward, _like_second
)
softmax = differentiate("softmax", _run_softmax, _softmax_gradients, _save_softmax)

# ---------------------------------------------------------------------------------------------------------------- GELU

define("gelu", "(Tensor x, str approximate) -> Tensor", elementwise.gelu, _like_first)
_gelu_backward = define_gradient(
    "gelu", "(Tensor dy, Tensor x, str approximate) -> Tensor", elementwise.gelu_backward, _like_second
)


def _save_gelu(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.approximate = inputs[1]


def _gelu_gradients(ctx, dy):
    return _gelu_backward(dy, *ctx.saved_tensors, ctx.approximate), None


gelu = differentiate("gelu", elementwise.gelu, _gelu_gradients, _save_gelu)

# ------------------------------------------------------------------------------------------------------------- L2 norm


_LENGTHS = "float eps, str eps_mode, int group_size, int? weight_repeat, bool batch_invariant"


def _run_l2_norm(x, weight, eps, eps_mode, group_size, weight_repeat, batch_invariant):
    return tuple(elementwise.l2_norm(
        x, weight, eps=eps, eps_mode=eps_mode, group_size=group_size, weight_repeat=weight_repeat,
        batch_invariant=batch_invariant, save_norm=True,
    ))


def _fake_l2_norm(x, weight, eps, eps_mode, group_size, *options):
    shape = groups_shape(x.shape[:-1], x.shape[-1], group_size)
    return x.new_empty(x.shape), x.new_empty(shape, dtype=_real(x.dtype))


def _run_l2_norm_backward(dy, x, weight, norm, needs_dweight, eps, eps_mode, group_size, weight_repeat, batch_invariant):
    needs = ["dx", "dweight"] if needs_dweight else ["dx"]
    return tuple(elementwise.l2_norm_backward(
        dy, x, weight, eps=eps, eps_mode=eps_mode, group_size=group_size, weight_repeat=weight_repeat,
        batch_invariant=batch_invariant, norm=norm, needs=needs,
    ))


def _fake_l2_norm_backward(dy, x, weight, norm, needs_dweight, *options):
    return x.new_empty(x.shape), weight.new_empty(weight.shape) if needs_dweight else absent(x)


def _save_l2_norm(ctx, inputs, output):
    x, weight, *ctx.options = inputs
    _, norm = output
    ctx.mark_non_differentiable(norm)
    ctx.save_for_backward(x, weight, norm)


def _l2_norm_gradients(ctx, dy, dnorm):
    x, weight, norm = ctx.saved_tensors
    needs_dweight = ctx.needs_input_grad[1]
    dx, dweight = _l2_norm_backward(dy, x, weight, norm, needs_dweight, *ctx.options)
    return dx, dweight if needs_dweight else None, *[None] * len(ctx.options)


define("l2_norm", f"(Tensor x, Tensor? weight, {_LENGTHS}) -> (Tensor y, Tensor norm)", _run_l2_norm, _fake_l2_norm)
_l2_norm_backward = define_gradient(
    "l2_norm",
    f"(Tensor dy, Tensor x, Tensor? weight, Tensor norm, bool needs_dweight, {_LENGTHS}) -> (Tensor dx, Tensor dweight)",
    _run_l2_norm_backward, _fake_l2_norm_backward,
)
l2_norm = differentiate("l2_norm", _run_l2_norm, _l2_norm_gradients, _save_l2_norm)

# ---------------------------------------------------------------------------------------------------------- group norm

_GROUPS = "int num_groups, float eps, str? activation, bool channels_last"


def _run_group_norm(x, weight, bias, residual, num_groups, eps, activation, channels_last):
    result = _group_norm.group_norm(x, num_groups, weight, bias, eps, residual=residual, activation=activation,
                                    channels_last=channels_last, save_stats=True)
    return tuple(result[:4])


def _fake_group_norm(x, weight, bias, residual, num_groups, *options):
    mean, rstd = (x.new_empty((*x.shape[:1], num_groups), dtype=_real(x.dtype)) for _ in range(2))
    return x.new_empty(x.shape), absent(x) if residual is None else residual.new_empty(residual.shape), mean, rstd


def _run_group_norm_backward(dy, dresidual_out, s, weight, bias, mean, rstd, needs, dx_dtype, num_groups, eps, activation,
                             channels_last):
    names = [name for name, needed in zip(_group_norm.GroupNormGradients._fields, (True, *needs)) if needed]
    gradients = _group_norm.group_norm_backward(
        dy, s, num_groups, weight, bias, eps, mean=mean, rstd=rstd, dresidual_out=dresidual_out, activation=activation,
        channels_last=channels_last, dx_dtype=_NAMES[dx_dtype], needs=names,
    )
    return tuple(gradients)


def _fake_group_norm_backward(dy, dresidual_out, s, weight, bias, mean, rstd, needs, dx_dtype, *options):
    others = (t.new_empty(t.shape) if needed else absent(dy) for t, needed in zip((weight, bias, s), needs))
    return s.new_empty(s.shape, dtype=dx_dtype), *others


def _save_group_norm(ctx, inputs, output):
    x, weight, bias, residual, *ctx.options = inputs
    _, residual_out, mean, rstd = output
    ctx.mark_non_differentiable(mean, rstd)
    s = x if residual is None else residual_out
    ctx.save_for_backward(s, weight, bias, mean, rstd)
    ctx.has_residual, ctx.dtype = residual is not None, x.dtype
    ctx.shared = ctx.has_residual and s.dtype == x.dtype  # the gradients of x and residual are the same tensor


def _group_norm_gradients(ctx, dy, dresidual_out, dmean, drstd):
    s, weight, bias, mean, rstd = ctx.saved_tensors
    _, wants_weight, wants_bias, wants_residual = needed = ctx.needs_input_grad[:4]
    dx, dweight, dbias, dresidual = _group_norm_backward(
        dy, dresidual_out if ctx.has_residual else None, s, weight, bias, mean, rstd,
        [wants_weight, wants_bias, wants_residual and not ctx.shared], ctx.dtype, *ctx.options,
    )
    gradients = (dx, dweight, dbias, dx if ctx.shared else dresidual)
    return (*[g if need else None for g, need in zip(gradients, needed)], *[None] * len(ctx.options))


define(
    "group_norm",
    f"(Tensor x, Tensor? weight, Tensor? bias, Tensor? residual, {_GROUPS}) -> "
    "(Tensor y, Tensor residual_out, Tensor mean, Tensor rstd)",
    _run_group_norm, _fake_group_norm,
)
_group_norm_backward = define_gradient(
    "group_norm",
    "(Tensor dy, Tensor? dresidual_out, Tensor s, Tensor? weight, Tensor? bias, Tensor mean, Tensor rstd, bool[] needs, "
    f"ScalarType dx_dtype, {_GROUPS}) -> (Tensor dx, Tensor dweight, Tensor dbias, Tensor dresidual)",
    _run_group_norm_backward, _fake_group_norm_backward,
)
group_norm = differentiate("group_norm", _run_group_norm, _group_norm_gradients, _save_group_norm)
