"""The operations in PyTorch. peer_torch calls these functions directly, peer_compile compiles them."""
import torch
import torch.nn.functional as F

from case import DROPOUT, E4M3_MAX, EPS, SCALED


def library_rms_norm(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, EPS)


def written_rms_norm(x, weight):
    """RMS norm as models write it; torch.compile makes one kernel of it."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPS) * weight.float()).to(x.dtype)


def e4m3(y, dims):
    """y in F8_E4M3 and its scales, one for all elements along dims."""
    wide = y.float()
    scale = (wide.abs().amax(dims, keepdim=True) + 1e-10) / E4M3_MAX
    return (wide / scale).to(torch.float8_e4m3fn), scale


def forwards(rms_norm):
    """Functions by the operation's name, each with the tensors of a Case that it takes."""

    def layer_norm(x, weight, bias):
        return F.layer_norm(x, x.shape[-1:], weight, bias, EPS)

    def gated(x, weight, z):
        return rms_norm(x, weight) * F.silu(z)

    def add(x, weight, residual):
        s = residual + x
        return rms_norm(s, weight), s

    def dropout(x, weight):
        return rms_norm(F.dropout(x, DROPOUT), weight)

    def chain(x, weight, residual):
        s = residual + F.dropout(x, DROPOUT)
        return F.gelu(rms_norm(s, weight)), s

    def quantized(x, weight):
        return e4m3(rms_norm(x, weight), -1)

    def fp8(q, x_scale, weight):
        x = q.to(weight.dtype) * x_scale.to(weight.dtype).repeat_interleave(SCALED, -1)
        y, scale = e4m3(rms_norm(x, weight), (0, 1))
        return y, scale, y.t().contiguous()

    return {
        "layer_norm": (layer_norm, ("x", "weight", "bias")),
        "rms_norm": (rms_norm, ("x", "weight")),
        "rms_norm_gated": (gated, ("x", "weight", "z")),
        "add_rms_norm": (add, ("x", "weight", "residual")),
        "dropout_rms_norm": (dropout, ("x", "weight")),
        "norm_chain": (chain, ("x", "weight", "residual")),
        "rms_norm_quantized": (quantized, ("x", "weight")),
        "softmax": (lambda x: torch.softmax(x, -1), ("x",)),
        "gelu": (F.gelu, ("x",)),
        "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), ("x",)),
        "quantize": (lambda x: e4m3(x, (0, 1)), ("x",)),
        "fp8_rms_norm": (fp8, ("q", "x_scale", "weight")),
    }


# The forwards whose backwards are operations too, named X_backward.
WITH_BACKWARD = ("layer_norm", "rms_norm", "rms_norm_gated", "add_rms_norm", "softmax", "gelu", "gelu_tanh")


def forward_call(function, names, case):
    tensors = [getattr(case, name) for name in names]
    return lambda: function(*tensors)


def backward_call(function, names, case):
    """A call that computes the gradients of all tensors. The forward is run here, before the call."""
    leaves = [getattr(case, name).detach().requires_grad_() for name in names]
    outputs = function(*leaves)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    gradients = [getattr(case, name) for name in ("dy", "ds")[: len(outputs)]]
    return lambda: torch.autograd.grad(outputs, leaves, gradients, retain_graph=True)
