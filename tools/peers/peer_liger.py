"""Liger-Kernel: rows of up to 65,536 columns. RMS norm is in the casting mode that its modules use by default."""
from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_backward, fused_add_rms_norm_forward
from liger_kernel.ops.group_norm import group_norm_backward, group_norm_forward
from liger_kernel.ops.layer_norm import layer_norm_backward as liger_layer_norm_backward
from liger_kernel.ops.layer_norm import layer_norm_forward as liger_layer_norm_forward
from liger_kernel.ops.rms_norm import rms_norm_backward as liger_rms_norm_backward
from liger_kernel.ops.rms_norm import rms_norm_forward as liger_rms_norm_forward
from liger_kernel.ops.softmax import _softmax_backward, _softmax_forward

from case import EPS

PACKAGE = "liger-kernel"
OFFSET, CASTING = 0.0, "llama"


def layer_norm_forward(case):
    x, weight, bias = case.x, case.weight, case.bias
    return lambda: liger_layer_norm_forward(x, weight, bias, EPS)


def layer_norm_backward(case):
    x, dy, weight, bias, mean, rstd = case.x, case.dy, case.weight, case.bias, case.mean, case.rstd
    return lambda: liger_layer_norm_backward(dy, x, weight, bias, mean, rstd)


def rms_norm_forward(case):
    x, weight = case.x, case.weight
    return lambda: liger_rms_norm_forward(x, weight, EPS, OFFSET, CASTING, None)


def rms_norm_backward(case):
    dy, weight = case.dy, case.weight
    _, x, rstd, block, warps, casting = liger_rms_norm_forward(case.x, weight, EPS, OFFSET, CASTING, None)
    return lambda: liger_rms_norm_backward(dy, x, weight, rstd, OFFSET, casting, block, warps, False, None)


def add_rms_norm_forward(case):
    x, residual, weight = case.x, case.residual, case.weight
    return lambda: fused_add_rms_norm_forward(x, residual, weight, EPS, OFFSET, CASTING)


def add_rms_norm_backward(case):
    dy, ds, weight = case.dy, case.ds, case.weight
    _, s, rstd, block, warps, stages, casting = fused_add_rms_norm_forward(case.x, case.residual, weight, EPS, OFFSET,
                                                                           CASTING)
    return lambda: fused_add_rms_norm_backward(dy, ds, s, weight, rstd, OFFSET, casting, block, warps, stages, False)


def softmax_forward(case):
    x = case.x
    return lambda: _softmax_forward(x)


def softmax_backward(case):
    dy = case.dy
    y, block, warps, several = _softmax_forward(case.x)
    return lambda: _softmax_backward(dy, y, block, warps, several)


def group_norm_calls(image):
    """Forward and backward of an image in the layout channels first."""
    x, dy, weight, bias, channels, groups = image.x, image.dy, image.weight, image.bias, image.channels, image.groups

    def backward():
        _, saved, mean, rstd, _ = group_norm_forward(x, channels, groups, weight, bias, EPS)
        return lambda: group_norm_backward(dy, saved, weight, bias, mean, rstd, channels, groups)

    return {"": lambda: lambda: group_norm_forward(x, channels, groups, weight, bias, EPS), "_backward": backward}


OPERATIONS = {
    "layer_norm": layer_norm_forward,
    "layer_norm_backward": layer_norm_backward,
    "rms_norm": rms_norm_forward,
    "rms_norm_backward": rms_norm_backward,
    "add_rms_norm": add_rms_norm_forward,
    "add_rms_norm_backward": add_rms_norm_backward,
    "softmax": softmax_forward,
    "softmax_backward": softmax_backward,
}
