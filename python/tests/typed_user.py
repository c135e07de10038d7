"""A user's program that `mypy --strict` accepts: tests/python.sh runs both."""

from typing import List

import numpy as np
import torch

import clnorm
import clnorm.torch as ct


def of_numpy(x: np.ndarray) -> float:
    device: clnorm.Device = clnorm.select("gpu;cpu")
    y = clnorm.layer_norm(x, eps=1e-6)
    out = clnorm.rms_norm(x, residual=y, rope=clnorm.Rope(x[:, :4], x[:, :4]))
    clnorm.rms_norm(x, rope=(x[:, :4], x[:, :4]))
    gradients = clnorm.rms_norm_backward(out.y, out.residual_out, x_is_sum=True, needs=["dx"])
    q, scale = clnorm.quantize(x, "float8_e4m3fn")
    try:
        clnorm.softmax(clnorm.dequantize(q, scale), 5)
    except (ValueError, clnorm.ClnormError) as error:
        print(device.name, device.memory, error)
    return float(gradients.dx.sum() + clnorm.group_norm_backward(x, x, 2).dx.sum() + clnorm.l2_norm(x).sum())


def of_torch(model: torch.nn.Module, x: torch.Tensor) -> List[str]:
    y: torch.Tensor = ct.softmax(ct.layer_norm(x, 8))
    total, residual = ct.FusedAddRMSNorm(8, dropout=0.1)(x, y)
    print(ct.LayerNorm(8)(x).sum(), total.sum(), residual.sum())
    return ct.replace(model)


if __name__ == "__main__":
    print(of_numpy(np.ones((4, 8), np.float32)), of_torch(torch.nn.Sequential(torch.nn.LayerNorm(8)), torch.ones(2, 8)))
