"""Layer norm and RMS norm. An array is of NumPy, torch (CPU), pyopencl, or has __dlpack__."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from clnorm._norm import NormGradients, norm_backward, norm_forward
from clnorm._rope import Rotation
from clnorm._shapes import Seed

Array = Any
Result = Any  # an array, or a Norm: an annotation of both would make type checkers refuse the use of either
Shape = Union[int, Sequence[int], None]

_FORWARD = """{title}

    s = residual + row_scale * dropout(x), without the parts that are absent; x * gate(z) with gate_first
    {formula}
    y = activation(x_hat * (weight_offset + weight) + bias), times gate(z) unless gate_first

x:                 (*rows, *columns). Statistics are over the columns: the last dimensions, as many as normalized_shape has,
                   else as many as weight has, else one. float32, float16, bfloat16, float64; float8 with x_scale.
weight, bias:      (*columns), float32, float16, bfloat16 or float64; float32 or float64 where x has float64. None: ones and
                   zeros.
normalized_shape:  the sizes of the columns, as in PyTorch.
eps:               added to {what}, 0 or more.
group_size:        columns that share statistics, a divisor of all columns; 0: all of them.
residual:          x's shape: added before the norm. The result is then a `Norm`, whose residual_out is the sum.
row_scale:         (*rows): a factor for each row of x (stochastic depth), float32; float64 where x has it.
z, gate:           x's shape: the gate. "silu" multiplies by z * sigmoid(z), "sigmoid" by sigmoid(z).
gate_first:        with a z: the gate is applied to x before the statistics. It excludes residual, dropout and row_scale.
activation:        None, "gelu", "gelu_tanh" or "silu", applied to each element of the result.
dropout, seed:     dropout: the probability p that an element of x becomes 0; the others are divided by 1 - p. seed: an
                   integer, or (seed, offset), of 64 bits, which determines the mask. It has no effect without dropout.
weight_offset:     1 for zero-centred weights.
weight_repeat:     weight and bias are (weight_rows, *columns), and row r of x has the weights of row
                   (r // weight_repeat) % weight_rows: 1 for weights by head, a sample's rows for weights by sample.
rope:              a `Rope`, or a tuple (cos, sin, …): the result is rotated by position, as queries and keys are. It
                   excludes activation, a z without gate_first, and measured scales of y.
dtype, scaling:    of y: "float8_e4m3fn" or "float8_e5m2" quantises it, with a scale for the "tensor", a "row" or a "group"
                   of scale_group columns (16, 32, 64 or 128), measured unless scale gives the tensor's. None: x's. The
                   result is a `Norm` where either is given, or y has 8 bits.
scale_dtype:       of measured scales of y: float32 or bfloat16. None: float32, or bfloat16 where accuracy is "compatible".
accuracy:          of an 8-bit y: "fused" computes y in float32 until it is quantised; "compatible" rounds it to bfloat16
                   before, as COAT does (Xi et al. 2024).
x_scale:           the scales of a float8 x: (1,), (*rows), or with x_scale_group (*rows, columns / x_scale_group).
save_stats:        the result is a `Norm` with the statistics that the backward can take.
y_transposed:      the result has a transposed copy of an 8-bit y too, (columns, rows).
save_y_row_scale:  beside one measured scale of y, the result has the scale that each row would have by itself.
save_mask:         the result has the mask of dropout. The backward does not need it, but computes it again.
batch_invariant:   a row's results have the same bits for any number of rows, which may take longer. It excludes one
                   measured scale of y, which depends on every row.
out:               the array that y is written to, of x's shape; it may be x itself.

Returns y as x is; or a `Norm`. A view whose normalised dimensions are innermost and dense is read without a copy: a part
of a packed array, swapped leading dimensions (up to 3 strides), broadcast ones. Any other view is copied first. `out` has
to be such a view, whose rows do not overlap. Sums are in float32 (float64 for float64), and the same call gives the same
bits.

    >>> import numpy, clnorm
    >>> y = clnorm.{name}(numpy.ones((4, 8), numpy.float32))
    >>> y.shape
    (4, 8)
"""

_BACKWARD = """The gradients of {name}, from dy, the gradient of y.

dy, x:             as the forward's y and x.
mean, rstd:        statistics that the forward saved ({saved}); None: they are computed again.
residual:          the forward's residual, where x is the forward's x. Where x is the forward's residual_out, pass
                   x_is_sum=True instead.
x_is_y:            x is the forward's y, so that the forward's x need not be kept. x_hat = (y - bias) / (weight_offset +
                   weight), which has y's rounding. It needs rstd{without}, so that eps has no effect, and
                   excludes residual, dresidual_out, x_is_sum, row_scale, z, activation, dropout, rope, save_y, 8 bits and
                   several rows of weights.
weight_bound:      with x_is_y: the least |weight_offset + weight| of a column. 0: the least value that y's dtype allows.
bias_bound:        with x_is_y: the largest |bias / (weight_offset + weight)| of a column. 0: 4. Where a column is out of
                   bounds, all gradients are NaN, and inexact_columns of the result is the number of such columns.
dresidual_out:     x's shape: the gradient of residual_out, which is added.
needs:             the gradients to compute, names of "dx", "dweight", "dbias", "dz", "dresidual"; None: all possible ones.
dx_dtype:          the dtype of dx, of 16 bits or more. None: x's, or dy's where x has 8 bits.
save_y:            the result has the forward's y too, computed again.
dweight, dbias:    arrays that these gradients are added to, both where both are computed, of any dtype that weight can
                   have: float32 sums for bfloat16 weights. The result has these arrays. With x_is_y they are NaN too
                   where a column is out of bounds.
batch_invariant:   as in {name}, for all gradients except dweight and dbias.
out:               the array that the first gradient is written to. For dx it may be x itself, and without a rope dy
                   itself.
All others are as in {name}; the same seed makes the same mask.

Returns a `NormGradients`: dx, dweight and dbias in their tensors' dtype, dz, dresidual; None for what was not computed.
The same call gives the same bits.
"""


def layer_norm(x: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *, normalized_shape: Shape = None,
               eps: float = 1e-5, group_size: int = 0, residual: Optional[Array] = None,
               row_scale: Optional[Array] = None, z: Optional[Array] = None, gate: str = "silu",
               gate_first: bool = False, activation: Optional[str] = None, dropout: float = 0.0, seed: Seed = None,
               weight_offset: float = 0.0, weight_repeat: Optional[int] = None, rope: Rotation = None,
               x_scale: Optional[Array] = None, x_scale_group: int = 0, dtype: Any = None,
               scaling: Optional[str] = None, scale_group: int = 0, scale: float = 0.0, scale_dtype: Any = None,
               accuracy: str = "fused", save_stats: bool = False, y_transposed: bool = False,
               save_y_row_scale: bool = False, save_mask: bool = False, batch_invariant: bool = False,
               out: Optional[Array] = None) -> Result:
    return norm_forward("layer_norm", x, weight, bias, normalized_shape, eps, group_size, residual, row_scale, z, gate,
                        gate_first, activation, dropout, seed, weight_offset, weight_repeat, rope, x_scale, x_scale_group,
                        dtype, scaling, scale_group, scale, scale_dtype, accuracy, save_stats, y_transposed,
                        save_y_row_scale, save_mask, batch_invariant, out)


def rms_norm(x: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *, normalized_shape: Shape = None,
             eps: float = 1e-5, group_size: int = 0, residual: Optional[Array] = None, row_scale: Optional[Array] = None,
             z: Optional[Array] = None, gate: str = "silu", gate_first: bool = False, activation: Optional[str] = None,
             dropout: float = 0.0, seed: Seed = None, weight_offset: float = 0.0,
             weight_repeat: Optional[int] = None, rope: Rotation = None, x_scale: Optional[Array] = None,
             x_scale_group: int = 0, dtype: Any = None, scaling: Optional[str] = None, scale_group: int = 0,
             scale: float = 0.0, scale_dtype: Any = None, accuracy: str = "fused", save_stats: bool = False,
             y_transposed: bool = False, save_y_row_scale: bool = False, save_mask: bool = False,
             batch_invariant: bool = False, out: Optional[Array] = None) -> Result:
    return norm_forward("rms_norm", x, weight, bias, normalized_shape, eps, group_size, residual, row_scale, z, gate,
                        gate_first, activation, dropout, seed, weight_offset, weight_repeat, rope, x_scale, x_scale_group,
                        dtype, scaling, scale_group, scale, scale_dtype, accuracy, save_stats, y_transposed,
                        save_y_row_scale, save_mask, batch_invariant, out)


def layer_norm_backward(dy: Array, x: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *,
                        mean: Optional[Array] = None, rstd: Optional[Array] = None, normalized_shape: Shape = None,
                        eps: float = 1e-5, group_size: int = 0, residual: Optional[Array] = None,
                        dresidual_out: Optional[Array] = None, x_is_sum: bool = False,
                        x_is_y: bool = False, weight_bound: float = 0.0, bias_bound: float = 0.0,
                        row_scale: Optional[Array] = None, z: Optional[Array] = None, gate: str = "silu",
                        gate_first: bool = False, activation: Optional[str] = None, dropout: float = 0.0,
                        seed: Seed = None, weight_offset: float = 0.0, weight_repeat: Optional[int] = None,
                        rope: Rotation = None, x_scale: Optional[Array] = None, x_scale_group: int = 0,
                        dx_dtype: Any = None, needs: Optional[Sequence[str]] = None, save_y: bool = False,
                        dweight: Optional[Array] = None, dbias: Optional[Array] = None, batch_invariant: bool = False,
                        out: Optional[Array] = None) -> NormGradients:
    return norm_backward("layer_norm", dy, x, weight, bias, mean, rstd, normalized_shape, eps, group_size, residual,
                         dresidual_out, x_is_sum, x_is_y, weight_bound, bias_bound, row_scale, z, gate, gate_first,
                         activation, dropout, seed, weight_offset, weight_repeat, rope, x_scale, x_scale_group, dx_dtype,
                         needs, save_y, dweight, dbias, batch_invariant, out)


def rms_norm_backward(dy: Array, x: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *,
                      rstd: Optional[Array] = None, normalized_shape: Shape = None, eps: float = 1e-5,
                      group_size: int = 0, residual: Optional[Array] = None, dresidual_out: Optional[Array] = None,
                      x_is_sum: bool = False, x_is_y: bool = False, weight_bound: float = 0.0, bias_bound: float = 0.0,
                      row_scale: Optional[Array] = None, z: Optional[Array] = None, gate: str = "silu",
                      gate_first: bool = False, activation: Optional[str] = None, dropout: float = 0.0,
                      seed: Seed = None, weight_offset: float = 0.0,
                      weight_repeat: Optional[int] = None, rope: Rotation = None,
                      x_scale: Optional[Array] = None, x_scale_group: int = 0, dx_dtype: Any = None,
                      needs: Optional[Sequence[str]] = None, save_y: bool = False, dweight: Optional[Array] = None,
                      dbias: Optional[Array] = None, batch_invariant: bool = False,
                      out: Optional[Array] = None) -> NormGradients:
    return norm_backward("rms_norm", dy, x, weight, bias, None, rstd, normalized_shape, eps, group_size, residual,
                         dresidual_out, x_is_sum, x_is_y, weight_bound, bias_bound, row_scale, z, gate, gate_first,
                         activation, dropout, seed, weight_offset, weight_repeat, rope, x_scale, x_scale_group, dx_dtype,
                         needs, save_y, dweight, dbias, batch_invariant, out)


layer_norm.__doc__ = _FORWARD.format(
    name="layer_norm", title="Layer normalisation (Ba, Kiros, Hinton 2016), with fused operations before and after it.",
    formula="x_hat = (s - mean(s)) / sqrt(mean((s - mean(s))^2) + eps)", what="the variance",
)
rms_norm.__doc__ = _FORWARD.format(
    name="rms_norm", title="RMS normalisation (Zhang, Sennrich 2019), with fused operations before and after it.",
    formula="x_hat = s / sqrt(mean(s^2) + eps)", what="the mean square",
)
layer_norm_backward.__doc__ = _BACKWARD.format(name="layer_norm", saved="both or neither", without=" without mean")
_OF_RMS_NORM = _BACKWARD.format(name="rms_norm", saved="rstd alone", without="")
rms_norm_backward.__doc__ = _OF_RMS_NORM.replace("mean, rstd:", "rstd:      ")
