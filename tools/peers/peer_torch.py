"""PyTorch without compilation. A kernel that does the whole operation is called without autograd."""
import torch

import plain
from case import EPS

PACKAGE = "torch"
aten = torch.ops.aten


def layer_norm_forward(case):
    x, weight, bias, shape = case.x, case.weight, case.bias, (case.cols,)
    return lambda: aten.native_layer_norm(x, shape, weight, bias, EPS)


def layer_norm_backward(case):
    x, dy, weight, bias, shape = case.x, case.dy, case.weight, case.bias, (case.cols,)
    _, mean, rstd = aten.native_layer_norm(x, shape, weight, bias, EPS)
    return lambda: aten.native_layer_norm_backward(dy, x, shape, mean, rstd, weight, bias, [True] * 3)


def rms_norm_backward(case):
    if case.device == "cpu":  # there it is several kernels
        return plain.backward_call(plain.library_rms_norm, ("x", "weight"), case)
    x, dy, weight, shape = case.x, case.dy, case.weight, (case.cols,)
    _, rstd = aten._fused_rms_norm(x, shape, weight, EPS)
    return lambda: aten._fused_rms_norm_backward(dy, x, shape, rstd, weight, [True] * 2)


def softmax_backward(case):
    y, dy = case.softmax, case.dy
    return lambda: aten._softmax_backward_data(dy, y, -1, y.dtype)


def gelu_backward(case, approximate):
    x, dy = case.x, case.dy
    return lambda: aten.gelu_backward(dy, x, approximate=approximate)


def _plain():
    """The operations as functions of plain.py, with autograd's backwards."""
    forwards = plain.forwards(plain.library_rms_norm)
    calls = {name: lambda case, forward=forward: plain.forward_call(*forward, case) for name, forward in forwards.items()}
    for name in plain.WITH_BACKWARD:
        calls[f"{name}_backward"] = lambda case, forward=forwards[name]: plain.backward_call(*forward, case)
    return calls


OPERATIONS = {
    **_plain(),
    "layer_norm": layer_norm_forward,
    "layer_norm_backward": layer_norm_backward,
    "rms_norm_backward": rms_norm_backward,
    "softmax_backward": softmax_backward,
    "gelu_backward": lambda case: gelu_backward(case, "none"),
    "gelu_tanh_backward": lambda case: gelu_backward(case, "tanh"),
}
