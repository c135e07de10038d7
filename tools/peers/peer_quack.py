"""QuACK, on Hopper and later. Its layer norm takes weights in f32; versions before 0.6 have no backward of it."""
import importlib

from quack.softmax import softmax_bwd, softmax_fwd

from case import EPS

rmsnorm = importlib.import_module("quack.rmsnorm")  # quack.rmsnorm is a function too

PACKAGE = "quack-kernels"


def layer_norm_forward(case):
    x, weight, bias = case.x, case.weight.float(), case.bias.float()
    return lambda: rmsnorm.layernorm_fwd(x, weight, bias, eps=EPS)


def layer_norm_backward(case):
    x, dy, weight, rstd, mean = case.x, case.dy, case.weight.float(), case.rstd, case.mean
    return lambda: rmsnorm.layernorm_bwd(x, weight, dy, rstd, mean, has_bias=True)


def rms_norm_forward(case):
    x, weight = case.x, case.weight
    return lambda: rmsnorm.rmsnorm_fwd(x, weight, eps=EPS)


def rms_norm_backward(case):
    x, dy, weight, rstd = case.x, case.dy, case.weight, case.rms_rstd
    return lambda: rmsnorm.rmsnorm_bwd(x, weight, dy, rstd)


def add_rms_norm_forward(case):
    x, residual, weight = case.x, case.residual, case.weight
    return lambda: rmsnorm.rmsnorm_fwd(x, weight, residual=residual, eps=EPS)


def add_rms_norm_backward(case):
    s, dy, ds, weight, rstd = case.s, case.dy, case.ds, case.weight, case.s_rstd
    return lambda: rmsnorm.rmsnorm_bwd(s, weight, dy, rstd, dresidual_out=ds, has_residual=True)


def softmax_forward(case):
    x = case.x
    return lambda: softmax_fwd(x)


def softmax_backward(case):
    y, dy = case.softmax, case.dy
    return lambda: softmax_bwd(dy, y)


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
