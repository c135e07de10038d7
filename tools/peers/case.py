"""The operations of `clnorm bench`, and the tensors that a call of one reads."""
from functools import cached_property
from typing import NamedTuple

import torch

EPS = 1e-5
DROPOUT = 0.1
E4M3_MAX = 448
SCALED = 16  # columns that share a scale of an 8-bit x
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}


class Operation(NamedTuple):
    name: str  # on the command line and in JSON
    moved: int = 0  # tensors of x's size that have to be moved; 0: every tensor, once

    def bytes(self, case):
        """The least traffic."""
        rows, cols, size = case.rows, case.cols, case.x.element_size()
        elements = rows * cols
        if self.moved:
            return self.moved * elements * size
        scales = elements // SCALED * 2  # in bf16
        return {
            "quantize": elements * (size + 1) + 4,
            "quantize_groups_16": elements * (size + 1) + 2 * scales,
            "rms_norm_quantized": elements * (size + 1) + cols * size + rows * 4,
            "fp8_rms_norm": 3 * elements + scales + cols * size + rows * 4 + 4,
            "fp8_rms_norm_backward": elements * (1 + 2 * size) + scales + 2 * cols * size + rows * 4,
        }[self.name]


OPERATIONS = (
    Operation("layer_norm", 2),
    Operation("rms_norm", 2),
    Operation("rms_norm_gated", 3),
    Operation("layer_norm_backward", 3),
    Operation("rms_norm_backward", 3),
    Operation("rms_norm_gated_backward", 5),
    Operation("add_rms_norm", 4),
    Operation("add_rms_norm_backward", 4),
    Operation("dropout_rms_norm", 2),
    Operation("norm_chain", 4),
    Operation("rms_norm_quantized"),
    Operation("softmax", 2),
    Operation("softmax_backward", 3),
    Operation("gelu", 2),
    Operation("gelu_backward", 3),
    Operation("gelu_tanh", 2),
    Operation("gelu_tanh_backward", 3),
    Operation("quantize"),
    Operation("quantize_groups_16"),
    Operation("fp8_rms_norm"),
    Operation("fp8_rms_norm_backward"),
)


class Case:
    """Tensors of one shape and dtype, each made when it is first read. dtype: a name in DTYPES."""

    def __init__(self, rows, cols, dtype, device):
        self.rows, self.cols, self.dtype, self.device = rows, cols, dtype, device

    def _random(self, *shape):
        return torch.randn(*shape, device=self.device).to(DTYPES[self.dtype])

    @cached_property
    def x(self):
        return self._random(self.rows, self.cols)

    @cached_property
    def z(self):
        """The gate."""
        return self._random(self.rows, self.cols)

    @cached_property
    def residual(self):
        return self._random(self.rows, self.cols)

    @cached_property
    def s(self):
        """x + residual, the input of the norm in add_rms_norm."""
        return self.x + self.residual

    @cached_property
    def dy(self):
        return self._random(self.rows, self.cols)

    @cached_property
    def ds(self):
        """The gradient of s that does not come from the norm."""
        return self._random(self.rows, self.cols)

    @cached_property
    def weight(self):
        return self._random(self.cols)

    @cached_property
    def bias(self):
        return self._random(self.cols)

    @cached_property
    def mean(self):
        """[rows] f32."""
        return self.x.float().mean(-1)

    @cached_property
    def rstd(self):
        """Layer norm's, [rows] f32."""
        return (self.x.float().var(-1, correction=0) + EPS).rsqrt()

    @cached_property
    def rms_rstd(self):
        return (self.x.float().square().mean(-1) + EPS).rsqrt()

    @cached_property
    def s_rstd(self):
        return (self.s.float().square().mean(-1) + EPS).rsqrt()

    @cached_property
    def softmax(self):
        return torch.softmax(self.x, -1)

    @cached_property
    def x_scale(self):
        """bf16 [rows, cols / SCALED]."""
        if self.cols % SCALED:
            raise ValueError(f"cols: expected a multiple of {SCALED}, not {self.cols}")
        largest = self.x.float().view(self.rows, -1, SCALED).abs().amax(-1)
        return ((largest + 1e-10) / E4M3_MAX).bfloat16()

    @cached_property
    def q(self):
        """x in F8_E4M3."""
        scale = self.x_scale.float().repeat_interleave(SCALED, -1)
        return (self.x.float() / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)
