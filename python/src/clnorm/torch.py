"""PyTorch: differentiable operators and modules for CPU tensors, computed by OpenCL in the memory of the tensors.

    >>> import torch, clnorm.torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))
    >>> clnorm.torch.replace(model)
    ['1: LayerNorm']

The functions work under autograd, torch.compile(fullgraph=True), torch.export, autocast, and torch.func's grad, vjp, jacrev
and vmap, which calls an operator once for each sample. torch.compile leaves calls of torch.func's grad, vjp and jacrev to
eager PyTorch, and refuses them with fullgraph=True. So it does with real options and seeds that are numbers of NumPy, but
takes real numbers of float64. Its other options are numbers of Python. torch.fx.symbolic_trace records a call of
clnorm.torch.NAME as one node. Gradients are not differentiable themselves, and there are no forward-mode derivatives: double
backward and jvp raise an error.

PyTorch's OpenMP threads spin for a moment after each of its operators; OMP_WAIT_POLICY=passive in the environment leaves
the processor to OpenCL's threads.
"""

from __future__ import annotations

import numbers
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch
import torch.fx
from torch import Tensor, nn

from clnorm import _torch_dispatch as _dispatch
from clnorm import _torch_operators as _operators
from clnorm._norm import norm_forward as _norm_forward
from clnorm._record import fail as _fail
from clnorm._rope import Rotation
from clnorm._rope import parts as _rope_parts
from clnorm._shapes import number as _number
from clnorm._shapes import numbers_of_seed, seed_pair
from clnorm._shapes import sizes as _sizes
from clnorm._torch_arrays import NotMemory as _NotMemory

__all__ = [
    "FusedAddLayerNorm", "FusedAddRMSNorm", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "LayerNorm", "RMSNorm", "gelu", "group_norm", "instance_norm", "l2_norm", "layer_norm", "replace", "rms_norm",
    "softmax",
]

Shape = Union[int, Sequence[int]]
Result = Any  # a Tensor, or with a residual (Tensor, Tensor)
Seed = Union[int, Sequence[int], Tensor, None]
_NO_ROPE = (None, None, None), ("neox", 1)


def _check_seed(seed: Seed, x: Tensor) -> None:
    """Refuses what is no seed, whether or not there is dropout."""
    if not isinstance(seed, Tensor):
        numbers_of_seed("seed", seed)
        return
    _dispatch.check_cpu(seed=seed)
    if seed.is_floating_point() or seed.is_complex() or seed.dtype == torch.bool or seed.shape not in ((), (1,), (2,)):
        _fail("seed", "a tensor of one or two integers", f"{seed.dtype} of shape {tuple(seed.shape)}")
    if seed.is_meta and not x.is_meta:
        _fail("seed", f"a tensor on {x.device}, as x is", f"one on {seed.device}")


def _drawn(seed: Seed, dropout: float) -> Optional[Tensor]:
    """The seed of a mask as a tensor: torch.compile would treat a number as a constant."""
    if not dropout:
        return None
    if seed is None:
        return torch.randint(-(2**63), 2**63 - 1, (1,), device="cpu")
    if isinstance(seed, Tensor) and not seed.is_meta:
        return seed
    if isinstance(seed, Tensor):
        seed = 0  # a result on the meta device has no values
    numbers = [number - 2**64 if number >= 2**63 else number for number in seed_pair(dropout, seed)]
    return torch.tensor(numbers, device="cpu")


def _positions(position: Tensor) -> Tensor:
    """Positions in int32. A position out of its range becomes -1, which is in no table either."""
    if position.dtype == torch.int32:
        return position
    if position.is_floating_point() or position.is_complex() or position.dtype == torch.bool:
        raise ValueError(f"rope.position: expected integers, got {position.dtype}")
    if position.dtype == torch.uint64:  # it has few operations; values above int64's range become negative
        position = position.view(torch.int64)
    elif position.dtype == torch.uint32:
        position = position.to(torch.int64)
    elif position.dtype != torch.int64:
        return position.to(torch.int32)
    return position.clamp(-1, 2**31 - 1).to(torch.int32)


def _norm(kind, x, normalized_shape, weight, bias, eps, residual, z, gate, gate_first, activation, dropout, seed,
          group_size, weight_offset, weight_repeat, row_scale, rope, batch_invariant):
    if _dispatch.is_compiling():
        _dispatch.check_numbers(
            {"eps": eps, "dropout": dropout, "weight_offset": weight_offset}, normalized_shape=normalized_shape,
            seed=None if isinstance(seed, Tensor) else seed, group_size=group_size, weight_repeat=weight_repeat,
            gate_first=gate_first, batch_invariant=batch_invariant,
            **{"rope.repeat": rope[4:] if isinstance(rope, tuple) else None},
        )
    tensors, sizes = (x, weight, bias, residual, z, row_scale), _sizes(normalized_shape)
    eps, dropout, weight_offset = _number("eps", eps), _number("dropout", dropout), _number("weight_offset", weight_offset)
    if seed is not None:
        _check_seed(seed, x)
    if rope is None and not dropout and _dispatch.is_unobserved(tensors) and not _dispatch.needs_gradient(tensors):
        try:
            result = _norm_forward(
                kind, x, weight, bias, sizes, eps, group_size, residual, row_scale, z, gate, gate_first, activation, 0.0,
                None, weight_offset, weight_repeat, None, None, 0, None, None, 0, 0.0, None, "fused", False, False, False,
                False, batch_invariant, None,
            )
            return result if residual is None else (result.y, result.residual_out)
        except _NotMemory:
            pass
    _dispatch.check_cpu(x=x, weight=weight, bias=bias, residual=residual, z=z)
    (cos, sin, position), (style, repeat) = _NO_ROPE if rope is None else _rope_parts(rope)
    if rope is not None or row_scale is not None:
        _dispatch.check_constant(x, row_scale=row_scale, **{"rope.cos": cos, "rope.sin": sin, "rope.position": position})
    position = position if position is None else _positions(position)
    y, residual_out, _, _ = _operators.norm(
        x, weight, bias, residual, z, row_scale, cos, sin, position, _drawn(seed, dropout), kind, list(sizes), eps,
        group_size, weight_offset, weight_repeat, activation, gate, gate_first, dropout, style, repeat, batch_invariant,
    )
    return y if residual is None else (y, residual_out)


def layer_norm(x: Tensor, normalized_shape: Shape, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5, *, residual: Optional[Tensor] = None, z: Optional[Tensor] = None, gate: str = "silu",
               gate_first: bool = False, activation: Optional[str] = None, dropout: float = 0.0, seed: Seed = None,
               group_size: int = 0, weight_offset: float = 0.0, weight_repeat: Optional[int] = None,
               row_scale: Optional[Tensor] = None, rope: Rotation = None, batch_invariant: bool = False) -> Result:
    """torch.nn.functional.layer_norm, with the operations that `clnorm.layer_norm` fuses into it.

    x, residual, z: (*, *normalized_shape).  weight, bias: normalized_shape; with a weight_repeat (rows, *normalized_shape).
    dropout: of x.  seed: determines the mask; an integer, (seed, offset) or an int64 tensor of either. None: a seed is
    drawn from PyTorch's default generator, so torch.manual_seed determines the mask.
    rope: a `clnorm.Rope` of tensors, or (cos, sin, …); position may be of any integer dtype.
    row_scale and rope have no gradients.
    batch_invariant: y and the gradients of its rows have the same bits for any number of rows.
    Returns y, or with a residual (y, residual + row_scale * dropout(x)), of the dtypes of x and of residual.
    """
    return _norm("layer_norm", x, normalized_shape, weight, bias, eps, residual, z, gate, gate_first, activation, dropout,
                 seed, group_size, weight_offset, weight_repeat, row_scale, rope, batch_invariant)


def rms_norm(x: Tensor, normalized_shape: Shape, weight: Optional[Tensor] = None, eps: Optional[float] = None, *,
             bias: Optional[Tensor] = None, residual: Optional[Tensor] = None, z: Optional[Tensor] = None,
             gate: str = "silu", gate_first: bool = False, activation: Optional[str] = None, dropout: float = 0.0,
             seed: Seed = None, group_size: int = 0, weight_offset: float = 0.0, weight_repeat: Optional[int] = None,
             row_scale: Optional[Tensor] = None, rope: Rotation = None, batch_invariant: bool = False) -> Result:
    """torch.nn.functional.rms_norm, with the operations that `clnorm.rms_norm` fuses into it.

    eps: None is torch.finfo's eps of float64 for an x of float64, of float32 for any other.
    Shapes, seed and result are as in `layer_norm`.
    """
    if eps is None:
        eps = torch.finfo(torch.float64 if isinstance(x, Tensor) and x.dtype == torch.float64 else torch.float32).eps
    return _norm("rms_norm", x, normalized_shape, weight, bias, eps, residual, z, gate, gate_first, activation, dropout,
                 seed, group_size, weight_offset, weight_repeat, row_scale, rope, batch_invariant)


def softmax(x: Tensor, dim: int = -1, dtype: Optional[torch.dtype] = None, *, batch_invariant: bool = False) -> Tensor:
    """torch.nn.functional.softmax. A row of -inf only becomes 0; PyTorch makes it NaN. x is copied where dim is not the
    last dimension. batch_invariant: as in `layer_norm`."""
    _dispatch.check_cpu(x=x)
    if _dispatch.is_compiling():
        _dispatch.check_numbers({}, dim=dim, batch_invariant=batch_invariant)
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        _fail("dtype", "a torch.dtype of floating-point numbers, or None", repr(dtype))
    x = x if dtype is None else x.to(dtype)
    if x.dim() == 0:
        return softmax(x.unsqueeze(0), dim, batch_invariant=batch_invariant).squeeze(0)
    if not isinstance(dim, numbers.Integral) or isinstance(dim, bool) or not -x.dim() <= dim < x.dim():
        raise IndexError(f"dim: expected a dimension of a tensor of shape {tuple(x.shape)}, got {dim!r}")
    if dim % x.dim() == x.dim() - 1:
        return _operators.softmax(x, batch_invariant)
    return _operators.softmax(x.transpose(dim, -1), batch_invariant).transpose(dim, -1)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """torch.nn.functional.gelu: approximate is "none" or "tanh"."""
    _dispatch.check_cpu(x=x)
    return _operators.gelu(x, approximate)


def l2_norm(x: Tensor, weight: Optional[Tensor] = None, eps: float = 1e-12, eps_mode: str = "floor", *,
            group_size: int = 0, weight_repeat: Optional[int] = None, batch_invariant: bool = False) -> Tensor:
    """torch.nn.functional.normalize over the last dimension, times weight: (columns,), or with a weight_repeat (rows,
    columns). eps_mode, group_size, weight_repeat: as in `clnorm.l2_norm`. batch_invariant: as in `layer_norm`."""
    _dispatch.check_cpu(x=x, weight=weight)
    if _dispatch.is_compiling():
        _dispatch.check_numbers(
            {"eps": eps}, group_size=group_size, weight_repeat=weight_repeat, batch_invariant=batch_invariant
        )
    return _operators.l2_norm(x, weight, _number("eps", eps), eps_mode, group_size, weight_repeat, batch_invariant)[0]


def group_norm(x: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5, *, residual: Optional[Tensor] = None, activation: Optional[str] = None) -> Result:
    """torch.nn.functional.group_norm, with a residual, x's shape, that is added before the norm, and an activation: None,
    "gelu", "gelu_tanh" or "silu".

    x: (samples, channels, *positions), contiguous or in PyTorch's channels_last memory format. Results have x's format.
    Returns y, or with a residual (y, x + residual), of the dtypes of x and of residual.
    """
    _dispatch.check_cpu(x=x, weight=weight, bias=bias, residual=residual)
    if _dispatch.is_compiling():
        _dispatch.check_numbers({"eps": eps}, num_groups=num_groups)
    if residual is not None and residual.shape != x.shape:
        _fail("residual", f"the shape of x, {tuple(x.shape)}", tuple(residual.shape))
    # vmap does not tell whether a tensor is contiguous in another memory format.
    last = x.dim() in (4, 5) and not x.is_contiguous() and x.movedim(1, -1).is_contiguous()
    if last:
        x, residual = x.movedim(1, -1), None if residual is None else residual.movedim(1, -1)
    eps = _number("eps", eps)
    y, residual_out, _, _ = _operators.group_norm(x, weight, bias, residual, num_groups, eps, activation, last)
    if residual is None:
        return y.movedim(-1, 1) if last else y
    return (y.movedim(-1, 1), residual_out.movedim(-1, 1)) if last else (y, residual_out)


def instance_norm(x: Tensor, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5, *,
                  residual: Optional[Tensor] = None, activation: Optional[str] = None) -> Result:
    """torch.nn.functional.instance_norm with the statistics of its input: group_norm with as many groups as channels.

    x: (samples, channels, *positions). All others and the result are as in `group_norm`.
    """
    _dispatch.check_cpu(x=x)
    if x.dim() < 3 or x.shape[2:].numel() == 1:
        raise ValueError(f"x: expected more than one position, after samples and channels, got shape {tuple(x.shape)}")
    return group_norm(x, x.shape[1], weight, bias, eps, residual=residual, activation=activation)


# Calls of these functions are nodes of torch.fx.symbolic_trace, whose proxies of tensors they could not compute.
for _function in ("gelu", "group_norm", "instance_norm", "l2_norm", "layer_norm", "rms_norm", "softmax"):
    torch.fx.wrap(_function)


class LayerNorm(nn.LayerNorm):
    """torch.nn.LayerNorm, computed by `layer_norm`: the same arguments, parameters and state_dict."""

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.RMSNorm):
    """torch.nn.RMSNorm, computed by `rms_norm`: the same arguments, parameters and state_dict."""

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(nn.GroupNorm):
    """torch.nn.GroupNorm, computed by `group_norm`: the same arguments, parameters and state_dict."""

    def forward(self, x: Tensor) -> Tensor:
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class _InstanceNorm(nn.modules.instancenorm._InstanceNorm):
    def forward(self, x: Tensor) -> Tensor:
        if isinstance(x, torch.fx.Proxy):  # PyTorch's forward asks for dimensions, which it does not have
            return x.tracer.create_proxy("call_module", x.tracer.path_of_module(self), (x,), {})
        return super().forward(x)

    def _apply_instance_norm(self, x: Tensor) -> Tensor:
        if self.track_running_stats:
            return super()._apply_instance_norm(x)
        return instance_norm(x, self.weight, self.bias, self.eps)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """torch.nn.InstanceNorm1d, computed by `instance_norm`; with track_running_stats by PyTorch."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """torch.nn.InstanceNorm2d, computed by `instance_norm`; with track_running_stats by PyTorch."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """torch.nn.InstanceNorm3d, computed by `instance_norm`; with track_running_stats by PyTorch."""


class _FusedAdd(nn.Module):
    """Base of the modules with a residual and dropout."""

    dropout: float

    def _set_dropout(self, dropout: float) -> None:
        self.dropout = _number("dropout", dropout)
        if not 0 <= self.dropout < 1:
            _fail("dropout", "0 or more, and less than 1", dropout)

    def _probability(self) -> float:
        return self.dropout if self.training else 0.0

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, dropout={self.dropout}"


class FusedAddLayerNorm(_FusedAdd, nn.LayerNorm):
    """LayerNorm of dropout(x) + residual, as in a transformer's block: `y, residual = norm(x, residual)`.

    Arguments, parameters and state_dict are those of torch.nn.LayerNorm. The additional argument dropout is a probability,
    0 or more and less than 1, that applies in training only. x and residual are (*, *normalized_shape).
    """

    def __init__(self, normalized_shape: Shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Any = None, dtype: Optional[torch.dtype] = None, *, dropout: float = 0.0) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, bias, device, dtype)
        self._set_dropout(dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tuple[Tensor, Tensor]:  # type: ignore[override] # two inputs
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps, residual=residual,
                          dropout=self._probability())


class FusedAddRMSNorm(_FusedAdd, nn.RMSNorm):
    """RMSNorm of dropout(x) + residual. Arguments and state_dict are those of torch.nn.RMSNorm; everything else is as in
    `FusedAddLayerNorm`."""

    def __init__(self, normalized_shape: Shape, eps: Optional[float] = None, elementwise_affine: bool = True,
                 device: Any = None, dtype: Optional[torch.dtype] = None, *, dropout: float = 0.0) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, device, dtype)
        self._set_dropout(dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tuple[Tensor, Tensor]:  # type: ignore[override] # two inputs
        return rms_norm(x, self.normalized_shape, self.weight, self.eps, residual=residual, dropout=self._probability())


_REPLACED = {
    nn.LayerNorm: LayerNorm, nn.RMSNorm: RMSNorm, nn.GroupNorm: GroupNorm, nn.InstanceNorm1d: InstanceNorm1d,
    nn.InstanceNorm2d: InstanceNorm2d, nn.InstanceNorm3d: InstanceNorm3d,
}


def replace(model: nn.Module) -> List[str]:
    """Replaces the forward of a model's LayerNorms, RMSNorms, GroupNorms and InstanceNorms by that of clnorm.torch. Returns
    the replaced modules: ["norm: LayerNorm", …].

    Modules stay the same objects: parameters, hooks and optimisers that hold them are as before. Subclasses of PyTorch's
    modules, which may have a forward of their own, are not replaced; nor are InstanceNorms with running statistics.

    Replaced modules differ from PyTorch's in a few cases: they refuse an x without columns and vmap over no samples, and a
    GroupNorm takes one sample with one value in each group. torch.jit.script does not take them.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
    replaced = []
    for name, module in model.named_modules():
        kind = _REPLACED.get(type(module))
        if kind is not None and not getattr(module, "track_running_stats", False):
            module.__class__ = kind
            replaced.append(f"{name or 'model'}: {kind.__name__}")
    return replaced
