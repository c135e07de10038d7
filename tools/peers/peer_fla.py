"""flash-linear-attention: layer and RMS norm with and without a gate, rows of up to 64 KiB."""
from case import EPS

try:
    from fla.modules.layernorm_gated import layer_norm_bwd, layer_norm_fwd
except ImportError:  # 0.6 and later
    from fla.modules.norm.layernorm_gated import layer_norm_bwd, layer_norm_fwd

PACKAGE = "fla-core"


def layer_norm_forward(case):
    x, weight, bias = case.x, case.weight, case.bias
    return lambda: layer_norm_fwd(x, weight, bias, EPS)


def layer_norm_backward(case):
    x, dy, weight, bias, mean, rstd = case.x, case.dy, case.weight, case.bias, case.mean, case.rstd
    return lambda: layer_norm_bwd(dy, x, weight, bias, EPS, mean, rstd)


def rms_norm_forward(case, z=None):
    x, weight = case.x, case.weight
    return lambda: layer_norm_fwd(x, weight, None, EPS, z=z, is_rms_norm=True)


def rms_norm_backward(case, z=None):
    x, dy, weight, rstd = case.x, case.dy, case.weight, case.rms_rstd
    return lambda: layer_norm_bwd(dy, x, weight, None, EPS, None, rstd, z=z, is_rms_norm=True)


OPERATIONS = {
    "layer_norm": layer_norm_forward,
    "layer_norm_backward": layer_norm_backward,
    "rms_norm": rms_norm_forward,
    "rms_norm_backward": rms_norm_backward,
    "rms_norm_gated": lambda case: rms_norm_forward(case, case.z),
    "rms_norm_gated_backward": lambda case: rms_norm_backward(case, case.z),
}
