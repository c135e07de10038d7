"""Calls of clnorm.torch that go through PyTorch's dispatcher, as something may observe them, and calls that bypass it."""

import subprocess
import sys

import numpy
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import clnorm
import clnorm.torch as ct
from clnorm import _call

X, W = torch.randn(4, 64), torch.nn.Parameter(torch.randn(64))
FUNCTIONS = {
    "layer_norm": lambda x: ct.layer_norm(x, (64,), W),
    "rms_norm": lambda x: ct.rms_norm(x, [64], W.detach()),
    "residual": lambda x: ct.rms_norm(x, 64, W, residual=x)[1],
    "dropout": lambda x: ct.layer_norm(x, 64, dropout=0.5, seed=3),
    "softmax": ct.softmax,
    "gelu": ct.gelu,
    "l2_norm": ct.l2_norm,
    "group_norm": lambda x: ct.group_norm(x, 4),
    "residual of group_norm": lambda x: ct.group_norm(x, 4, residual=x)[0],
}
GRADIENTS = [torch.no_grad, torch.inference_mode, torch.enable_grad]


@pytest.fixture(params=FUNCTIONS)
def function(request):
    return FUNCTIONS[request.param]


@pytest.fixture
def undispatched(monkeypatch):
    """Returns a function after which any operator fails."""

    def fail(*_, **__):
        raise AssertionError("an operator was called")

    return lambda: monkeypatch.setattr(torch._ops.OpOverload, "__call__", fail)


class Seen(TorchDispatchMode):
    """Records the calls of operators of clnorm."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator.namespace == "clnorm":
            self.names.append(operator.name())
        return operator(*args, **(kwargs or {}))


class SeenFunctions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "namespace", None) == "clnorm":
            self.names.append(function.name())
        return function(*args, **(kwargs or {}))


def with_gradients(function, x):
    x = x.detach().clone().requires_grad_()
    y = function(x)
    return [y.detach(), *torch.autograd.grad(y.square().sum(), x)]


@pytest.mark.parametrize("mode", GRADIENTS)
def test_plain_calls_need_no_dispatcher(function, mode, undispatched):
    with mode():
        expected = function(X)
        undispatched()
        for _ in range(2):
            assert torch.equal(function(X), expected)


def test_gradients_need_no_dispatcher_and_are_the_same(function, undispatched):
    with Seen() as seen:
        expected = with_gradients(function, X)
    assert len(seen.names) == 2 and seen.names[1].endswith("_backward")
    undispatched()
    for got, wanted in zip(with_gradients(function, X), expected):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("mode", [Seen, SeenFunctions])
def test_modes_see_operators(function, mode):
    with torch.no_grad():
        expected = function(X)
        with mode() as seen:
            y = function(X)
    assert torch.equal(y, expected) and len(seen.names) == 1 and seen.names[0].startswith("clnorm::")


def test_subclasses_see_operators(function):
    class Mine(torch.Tensor):
        names = []

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            cls.names.append(getattr(function, "namespace", None))
            return super().__torch_function__(function, types, args, kwargs or {})

    y = function(X.as_subclass(Mine))
    assert type(y) is Mine and "clnorm" in Mine.names


@pytest.mark.parametrize("pre_dispatch", [False, True])
def test_traces_have_operators(function, pre_dispatch):
    with torch.no_grad():
        graph = make_fx(lambda x: function(x), pre_dispatch=pre_dispatch)(X)
    names = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert [name.split(".")[0] for name in names].count("clnorm") == 1


def test_autocast_and_the_profiler_see_operators(function):
    with torch.no_grad(), torch.profiler.profile() as profile:
        function(X)
        with torch.autocast("cpu"):
            function(X)
    assert len([event for event in profile.events() if event.name.startswith("clnorm::")]) == 2


def test_autocast_takes_the_operator(function, undispatched):
    undispatched()
    with torch.autocast("cpu"), pytest.raises(AssertionError, match="an operator was called"):
        function(X)


def test_compiled_and_fake_calls_are_operators(function):
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for mode in GRADIENTS:
        with mode():
            torch.testing.assert_close(compiled(X), function(X), rtol=0, atol=0)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        y = function(mode.from_tensor(X))
    assert type(y).__name__ == "FakeTensor" and y.shape == X.shape


REAL_OPTIONS = {
    "eps": [lambda x, value: ct.layer_norm(x, 64, eps=value), lambda x, value: ct.group_norm(x, 2, eps=value),
            lambda x, value: ct.l2_norm(x, eps=value)],
    "weight_offset": [lambda x, value: ct.rms_norm(x, 64, W, weight_offset=value)],
    "dropout": [lambda x, value: ct.rms_norm(x, 64, dropout=value, seed=1)],
}
INTEGER_OPTIONS = {
    "normalized_shape": [lambda x, value: ct.layer_norm(x.view(64, 4), value),
                         lambda x, value: ct.layer_norm(x.view(64, 4), (value,))],
    "group_size": [lambda x, value: ct.rms_norm(x, 64, group_size=value), lambda x, value: ct.l2_norm(x, group_size=value)],
    "num_groups": [lambda x, value: ct.group_norm(x, value)],
    "seed": [lambda x, value: ct.rms_norm(x, 64, dropout=0.5, seed=value),
             lambda x, value: ct.rms_norm(x, 64, dropout=0.5, seed=(1, value))],
    "weight_repeat": [lambda x, value: ct.rms_norm(x, 64, W.view(1, 64), weight_repeat=value)],
    "rope.repeat": [lambda x, value: ct.rms_norm(x, 64, rope=clnorm.Rope(X[:, :4], X[:, :4], repeat=value))],
}


def compiled_call(function):
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")


@pytest.mark.parametrize("option", REAL_OPTIONS)
def test_a_compiled_call_takes_a_real_option_of_numpy_in_float64(option):
    for function in REAL_OPTIONS[option]:
        compiled = compiled_call(function)
        for value in (0.25, 0.5, 0.0625):
            for number in (numpy.float64(value), numpy.array(value)):
                assert torch.equal(compiled(X, number), function(X, value))


@pytest.mark.parametrize("option", [*REAL_OPTIONS, *INTEGER_OPTIONS])
def test_a_compiled_call_refuses_other_numbers_of_numpy_by_name(option):
    wrong = numpy.float32(0.25) if option in REAL_OPTIONS else numpy.int64(4)
    expected = f"{option}: expected a number of Python, as torch.compile does not know the value of one of torch."
    for function in (REAL_OPTIONS | INTEGER_OPTIONS)[option]:
        with pytest.raises(torch._dynamo.exc.Unsupported) as error:
            compiled_call(function)(X, wrong)
        assert expected in str(error.value)


@pytest.mark.parametrize("option", [*REAL_OPTIONS, "seed", "rope.repeat"])
def test_a_compiled_call_leaves_other_numbers_of_numpy_to_eager(option):
    number = numpy.float32(0.25) if option in REAL_OPTIONS else numpy.int64(4)
    for function in (REAL_OPTIONS | INTEGER_OPTIONS)[option]:
        torch.compiler.reset()
        assert torch.equal(torch.compile(function, backend="aot_eager")(X, number), function(X, number))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_transforms_see_operators(function):
    x = torch.randn(2, 4, 64)
    with torch.no_grad():
        assert torch.equal(torch.func.vmap(function)(x), torch.stack([function(part) for part in x]))
    gradient = torch.func.grad(lambda x: function(x).square().sum())(X)
    assert torch.equal(gradient, with_gradients(function, X)[1])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 2), (2, 3, 4, 5, 2, 2)])
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_takes_channels_in_any_order(shape, dim):
    x = torch.randn(shape)
    for view in (x, x.transpose(-1, -2).contiguous().transpose(-1, -2), x.movedim(2, -1).contiguous().movedim(-1, 2)):
        for ours, theirs in ((lambda t: ct.group_norm(t, 1), lambda t: torch.nn.functional.group_norm(t, 1)),
                             (ct.instance_norm, torch.nn.functional.instance_norm)):
            torch.testing.assert_close(torch.vmap(ours, dim)(view), torch.vmap(theirs, dim)(view), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("gradient", [
    lambda function, x: torch.func.grad(lambda t: function(t).square().sum())(x),
    lambda function, x: torch.func.vjp(function, x)[1](x)[0],
    lambda function, x: torch.func.jacrev(function)(x),
])
def test_a_compiled_gradient_is_left_to_eager(function, gradient):
    x = X[:2]
    torch.compiler.reset()
    compiled = torch.compile(lambda t: gradient(function, t), backend="aot_eager")
    torch.testing.assert_close(compiled(x), gradient(function, x), rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
@pytest.mark.parametrize("rows", [4, 1 << 14])  # of 256 bytes: results of 4 MiB get their memory in another way
def test_a_compiled_call_without_gradients_is_left_to_eager(rows):
    x = torch.randn(rows, 64)
    torch.compiler.reset()
    _call._quick.clear()
    compiled = torch.compile(lambda t: clnorm.gelu(t) + 1, backend="aot_eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(x), clnorm.gelu(x) + 1, rtol=0, atol=0)


@pytest.mark.parametrize("make", [torch._neg_view, lambda x: torch.complex(x, x).conj().imag])
def test_negative_views_are_resolved(function, make):
    view = make(X)
    assert view.is_neg()
    for _ in range(2):
        torch.testing.assert_close(function(view), function(view.clone().resolve_neg()), rtol=0, atol=0)


def test_meta_tensors_have_shapes_alone():
    for _ in range(2):
        y = ct.gelu(torch.empty(4, 64, device="meta"))
        assert y.is_meta and y.shape == (4, 64)


def test_an_import_in_a_mode_knows_the_default_state():
    program = """
import torch
with torch.autocast("cpu"), torch.inference_mode(), torch.device("cpu"):
    import clnorm.torch
from clnorm import _torch_dispatch
assert _torch_dispatch.is_unobserved((torch.ones(2),))
with torch.autocast("cpu"):
    assert not _torch_dispatch.is_unobserved((torch.ones(2),))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_an_operator_may_call_one_without_gradients(function):
    """There PyTorch has excluded autograd, with gradients still enabled."""

    @torch.library.custom_op("clnorm_tests::inner", mutates_args=())
    def inner(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            y = function(x)
        assert not y.requires_grad
        return y

    assert torch.equal(inner(X.clone().requires_grad_()), function(X))
