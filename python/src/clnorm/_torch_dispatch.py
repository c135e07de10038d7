"""How the operators of clnorm.torch are defined, differentiated and called.

A call goes through PyTorch's dispatcher where something may observe it: torch.compile, a mode, a transform, autocast, the
profiler, a subclass. Where nothing does (`is_unobserved`), the function behind the operator is called directly, in less
time.
"""

from __future__ import annotations

import threading

import numpy
import torch
from torch.autograd import forward_ad

from clnorm._torch_arrays import NotMemory, refuse_device, refuse_layout

_library = torch.library.Library("clnorm", "DEF")
ops = torch.ops.clnorm

# The types of inputs that do not observe calls themselves, as a subclass of Tensor may.
_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
_TYPES = _TENSORS | {type(None), bool, int, float, str, list, tuple, torch.Size, torch.dtype}

_included, _excluded = torch._C._dispatch_tls_local_include_set, torch._C._dispatch_tls_local_exclude_set
_in_function_mode, _profiled = torch._C._is_torch_function_mode_enabled, torch._C._autograd._profiler_enabled
_in_autocast = torch._C._is_any_autocast_enabled
_is_grad_enabled, is_compiling = torch.is_grad_enabled, torch.compiler.is_compiling
_GRAD_TRANSFORM = torch._C._functorch.TransformType.Grad
_NO_FORWARD_MODE = "clnorm has no forward-mode derivatives (jvp): use torch.nn.functional there"


def _default_keys() -> tuple:
    """The dispatch keys of a thread in no mode, transform or trace: the sets that it adds to those of its tensors, outside
    and inside inference mode, and the set that it removes outside."""
    found = []

    def look():
        found.append((_included().raw_repr(), _excluded().raw_repr()))
        with torch.inference_mode():
            found.append((_included().raw_repr(), _excluded().raw_repr()))

    thread = threading.Thread(target=look)  # a new thread is in no mode, whatever mode this one is in
    thread.start()
    thread.join()
    (outside, excluded), (inside, _) = found
    return frozenset((outside, inside)), excluded


_DEFAULT_INCLUDED, _DEFAULT_EXCLUDED = _default_keys()


def is_unobserved(inputs) -> bool:
    """Whether nothing but autograd could observe that an operator is called with these inputs."""
    return (
        not is_compiling()
        and not _in_function_mode()
        and _included().raw_repr() in _DEFAULT_INCLUDED
        and _TYPES.issuperset(map(type, inputs))
        and not _in_autocast()
        and forward_ad._current_level < 0
        and not _profiled()
    )


def needs_gradient(inputs) -> bool:
    """Whether autograd has to record an unobserved call with these inputs."""
    if _is_grad_enabled():
        for tensor in inputs:
            if type(tensor) in _TENSORS and tensor.requires_grad:
                return True
    return False


def _is_in_grad_transform() -> bool:
    """Whether torch.func.grad, vjp or jacrev is differentiating the caller."""
    if not torch._C._are_functorch_transforms_active():
        return False
    return any(level.key() == _GRAD_TRANSFORM for level in torch._C._functorch.get_interpreter_stack())


def check_cpu(**tensors) -> None:
    """Refuses a tensor that is not in the host's memory, or not on the device of the first tensor. None stands for a tensor
    that is not given; the first one has to be."""
    in_forward_mode = forward_ad._current_level >= 0
    device = None
    for name, tensor in tensors.items():
        if tensor is None and device is not None:
            continue
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
        if tensor.device.type not in ("cpu", "meta"):
            refuse_device(name, tensor)
        device = device or tensor.device
        if tensor.device != device:
            like = next(iter(tensors))
            raise ValueError(f"{name}: expected a tensor on {device}, as {like} is, got one on {tensor.device}")
        refuse_layout(name, tensor)
        if in_forward_mode and forward_ad.unpack_dual(tensor).tangent is not None:
            raise RuntimeError(f"{name}: has a tangent, and {_NO_FORWARD_MODE}")


def check_constant(x, **tensors) -> None:
    """Refuses a tensor beside x that requires a gradient which no operator computes."""
    check_cpu(x=x, **tensors)
    for name, tensor in tensors.items():
        if tensor is not None and tensor.requires_grad:
            raise ValueError(
                f"{name}: expected a tensor that does not require a gradient, as none is computed: detach() it"
            )


def check_numbers(reals: dict, **others) -> None:
    """Refuses options of a call that torch.compile traces, where it traces them too and does not know their values: numbers
    of NumPy and tensors. It reads a real number of float64. An option may be a tuple or list of numbers."""
    for name, option in {**reals, **others}.items():
        for value in option if isinstance(option, (tuple, list)) else (option,):
            if not isinstance(value, (numpy.ndarray, torch.Tensor)):  # a number of NumPy is traced as an array
                continue
            dtype = torch.as_tensor(value).dtype
            if name not in reals or dtype != torch.float64:
                raise TypeError(
                    f"{name}: expected a number of Python, as torch.compile does not know the value of one of {dtype}: "
                    "convert it by item() outside the compiled function"
                )


def absent(tensor):
    """The output of an operator in place of an absent one: schemas have no optional outputs."""
    return tensor.new_empty(0)


def define(name, schema, run, fake) -> None:
    """Defines an operator. run: computes its outputs; None for absent ones. fake: makes empty ones of the same shapes."""

    def run_in_full(first, *others):
        with torch.no_grad():  # an operator that calls this one may have excluded autograd, with gradients still enabled
            outputs = run(first, *others)
        if not isinstance(outputs, tuple):
            return outputs
        return tuple(absent(first) if output is None else output for output in outputs)

    _library.define(f"{name}{schema}")
    _library.impl(name, run_in_full, "CPU")
    torch.library.register_fake(f"clnorm::{name}", fake, lib=_library)


def _differentiable(compute, backward, setup):
    """A torch.autograd.Function of an operator's inputs and a keyset."""

    class Differentiated(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            *inputs, keyset = arguments
            output = compute(keyset, *inputs)
            if setup is not None:
                setup(ctx, inputs, output)
            return output

        @staticmethod
        def backward(ctx, *gradients):
            return *backward(ctx, *gradients), None  # None: of the keyset

    return Differentiated


def _transformable(operator, backward, setup):
    """A torch.autograd.Function of an operator's inputs in the form that torch.func requires. Its call takes longer than
    that of `_differentiable`. torch.compile leaves it to eager PyTorch: it would compile parts of it by themselves, and a
    compiled gradient is differentiated at once, which `define_gradient` refuses."""

    class Transformed(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        @torch._disable_dynamo
        def forward(*inputs):
            return operator(*inputs)

        @staticmethod
        def setup_context(ctx, inputs, output):
            if setup is not None:
                setup(ctx, inputs, output)

        @staticmethod
        @torch._disable_dynamo
        def backward(ctx, *gradients):
            return backward(ctx, *gradients)

        @staticmethod
        def jvp(ctx, *tangents):
            raise RuntimeError(_NO_FORWARD_MODE)

    return Transformed


def differentiate(name, run, backward, setup=None):
    """Registers an operator's gradients. torch.library.register_autograd would read the schema in every call, which for 20
    arguments takes several times as long as the call itself. Returns a function that calls the operator."""
    operator = getattr(ops, name).default

    def run_below(keyset, *inputs):
        with torch._C._AutoDispatchBelowAutograd():
            return operator.redispatch(keyset & torch._C._after_autograd_keyset, *inputs)

    Dispatched = _differentiable(run_below, backward, setup)
    Direct = _differentiable(lambda _, *inputs: run(*inputs), backward, setup)
    Transformed = _transformable(operator, backward, setup)

    def dispatched(keyset, *inputs):
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*inputs):
            return Dispatched.apply(*inputs, keyset)
        return run_below(keyset, *inputs)

    def call(*inputs):
        if is_unobserved(inputs):
            try:
                if not needs_gradient(inputs):
                    return run(*inputs)
                # An operator that calls this one may have excluded autograd.
                if _excluded().raw_repr() == _DEFAULT_EXCLUDED:
                    return Direct.apply(*inputs, None)
            except NotMemory:  # the dispatcher materialises the tensor or refuses it
                pass
        if not is_compiling() and _is_in_grad_transform():
            return Transformed.apply(*inputs)
        return operator(*inputs)

    _library.impl(name, dispatched, "Autograd", with_keyset=True)
    return call


def define_gradient(name, schema, run, fake):
    """Defines the operator of a gradient, which has no gradient itself. Returns a function that calls it."""

    def refuse(ctx, *gradients):
        raise RuntimeError(
            f"clnorm: the gradient of {name} cannot be differentiated again (double backward): use torch.nn.functional "
            "where create_graph=True is needed"
        )

    define(f"{name}_backward", schema, run, fake)
    return differentiate(f"{name}_backward", run, refuse)
