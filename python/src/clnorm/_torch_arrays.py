"""The backend of PyTorch's tensors: see `_arrays`. It is imported with the first tensor, so that PyTorch is optional."""

from __future__ import annotations

import math
import struct

import torch

from clnorm import _kept_memory, _repeated_calls
from clnorm._arrays import DLPACK_DTYPES, QUICK_TYPES, SIZES, Tensor
from clnorm._native import lib

_WITH_HUGE_PAGES = 4 << 20  # bytes from which new memory gets huge pages; NumPy requests them itself
_use_huge_pages = lib.cln_use_huge_pages  # torch.compile has to guard the globals that `empty` reads, and cannot guard lib


class NotMemory(ValueError):
    """A tensor that is not just strided memory of the host."""


def refuse_device(name, tensor):
    """Raises the error of a tensor that is not in the host's memory."""
    raise NotMemory(
        f"{name}: expected a CPU tensor, got one on {tensor.device}: clnorm computes with OpenCL, which cannot reach the "
        "memory of another device runtime. Move it with .cpu(), or use torch.nn.functional there"
    )


def refuse_layout(name, tensor):
    """Refuses a sparse or nested tensor."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        kind = "a nested tensor" if tensor.is_nested else str(tensor.layout)
        raise NotMemory(f"{name}: expected a strided tensor, got {kind}: use to_dense() or to_padded_tensor()")


class Torch:
    kind = "a torch tensor"
    on_queue, copies = False, True

    @staticmethod
    def layout(name, tensor):
        if not tensor.is_cpu:
            refuse_device(name, tensor)
        if tensor.requires_grad and torch.is_grad_enabled():
            raise NotMemory(
                f"{name}: requires a gradient, which this function does not record: use clnorm.torch, or detach() it"
            )
        refuse_layout(name, tensor)
        if tensor.is_neg() or tensor._is_zerotensor():
            raise NotMemory(f"{name}: expected a tensor that is no negative view: use resolve_neg()")
        if torch._is_functional_tensor(tensor) or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            raise NotMemory(f"{name}: expected a tensor with memory, not one that a torch.func transform traces: use "
                            "clnorm.torch there")
        return tensor.shape, tensor.stride(), tensor.dtype

    @staticmethod
    def tensor(layout):
        shape, strides, dtype = layout
        return Tensor(tuple(shape), strides, str(dtype).removeprefix("torch."))

    @staticmethod
    def contiguous(tensor):
        return tensor.contiguous() if not tensor.is_contiguous() else tensor.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def empty(like, shape, dtype):
        tensor = torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")
        if tensor.nbytes >= _WITH_HUGE_PAGES:
            _use_huge_pages(tensor.data_ptr(), tensor.nbytes)
        return tensor

    @staticmethod
    def zeros(like, shape, dtype):
        return torch.zeros(shape, dtype=getattr(torch, dtype), device="cpu")

    @staticmethod
    def large(like, shape, dtype):
        memory = _kept_memory.take(math.prod(shape) * SIZES[dtype])
        storage = torch.from_numpy(memory).untyped_storage()
        return torch.empty(0, dtype=getattr(torch, dtype), device="cpu").set_(storage, 0, shape)

    @staticmethod
    def maker(make, shape, dtype):
        if make is not Torch.empty or math.prod(shape) * SIZES[dtype] >= _WITH_HUGE_PAGES:
            return make, (None, shape, dtype)
        return torch.Tensor, shape, DLPACK_DTYPES[dtype]

    @staticmethod
    def full(like, number):
        return torch.full((1,), number, dtype=torch.float32, device="cpu")

    @staticmethod
    def addresses_of(tensors):
        data_ptr, pack = torch.Tensor.data_ptr, struct.Struct(f"{len(tensors)}P").pack
        return lambda arrays: pack(*map(data_ptr, arrays))

    @staticmethod
    def check_output(name, tensor):
        pass

    @staticmethod
    def note_write(tensor):
        """Tells autograd of the write, so that the backward of an operator that has saved the tensor raises an error."""
        if not tensor.is_inference():  # an inference tensor has no version
            torch.autograd.graph.increment_version(tensor)


for _type in (torch.Tensor, torch.nn.Parameter):
    _exchange = getattr(_type, "__dlpack_c_exchange_api__", None)  # PyTorch 2.10 and later
    if _exchange is not None and _repeated_calls.add_tensor_type(_type, _exchange, torch.is_grad_enabled, Torch.note_write):
        QUICK_TYPES.add(_type)
