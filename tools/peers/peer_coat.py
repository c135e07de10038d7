"""COAT's quantisation and RMS norm of FP8 tensors. Other tensors are bf16; its tiles must divide the shape."""
import torch
from coat.activation.real_quantization import fp8_quantize, fp8_rmsnorm_backward, fp8_rmsnorm_forward

from case import EPS, SCALED

PACKAGE = "fp8-coat"
TILE, WIDEST = 64, 32768


def check_case(case):
    """COAT's kernels do not check this, and would write past the end."""
    if case.dtype != "bf16" or case.rows % TILE or case.cols % TILE or case.cols > WIDEST:
        raise ValueError(f"expected bf16, multiples of {TILE} rows and columns, and at most {WIDEST} columns")


def fp8_rms_norm_forward(case):
    check_case(case)
    q, x_scale, weight = case.q, case.x_scale, case.weight
    return lambda: fp8_rmsnorm_forward(q, x_scale, weight, SCALED, EPS)


def fp8_rms_norm_backward(case):
    check_case(case)
    q, x_scale, weight, dy = case.q, case.x_scale, case.weight, case.dy
    _, rstd, warps = fp8_rmsnorm_forward(q, x_scale, weight, SCALED, EPS)[3]
    return lambda: fp8_rmsnorm_backward(q, x_scale, dy, weight, rstd, SCALED, warps)


def quantize_groups_16(case):
    check_case(case)
    x = case.x
    return lambda: fp8_quantize(x, SCALED, "E4M3", scale_dtype=torch.float32)  # f32 scales, as in clnorm bench


OPERATIONS = {"quantize_groups_16": quantize_groups_16,
              "fp8_rms_norm": fp8_rms_norm_forward,
              "fp8_rms_norm_backward": fp8_rms_norm_backward}
