"""COAT's quantisation and RMS norm on FP8 tensors: bf16 beside them, and shapes that its tiles divide."""
import torch
from coat.activation.real_quantization import fp8_quantize, fp8_rmsnorm_backward, fp8_rmsnorm_forward

from case import EPS, SCALED

PACKAGE = "fp8-coat"
TILE, WIDEST = 64, 32768


def refuse_what_does_not_fit(case):
    """Its kernels check none of this, and write past the end."""
    if case.dtype != "bf16" or case.rows % TILE or case.cols % TILE or case.cols > WIDEST:
        raise ValueError(f"expected bf16, multiples of {TILE} rows and columns, and at most {WIDEST} columns")


def fp8_rms_norm_forward(case):
    refuse_what_does_not_fit(case)
    q, x_scale, weight = case.q, case.x_scale, case.weight
    return lambda: fp8_rmsnorm_forward(q, x_scale, weight, SCALED, EPS)


def fp8_rms_norm_backward(case):
    refuse_what_does_not_fit(case)
    q, x_scale, weight, dy = case.q, case.x_scale, case.weight, case.dy
    _, rstd, warps = fp8_rmsnorm_forward(q, x_scale, weight, SCALED, EPS)[3]
    return lambda: fp8_rmsnorm_backward(q, x_scale, dy, weight, rstd, SCALED, warps)


def quantize_groups_16(case):
    refuse_what_does_not_fit(case)
    x = case.x
    return lambda: fp8_quantize(x, SCALED, "E4M3", scale_dtype=torch.float32)  # as clnorm bench has them


OPERATIONS = {"quantize_groups_16": quantize_groups_16,
              "fp8_rms_norm": fp8_rms_norm_forward,
              "fp8_rms_norm_backward": fp8_rms_norm_backward}
