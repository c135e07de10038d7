"""Functions of clnorm.torch: PyTorch's own samples against float64 autograd, gradients, tracing, transforms."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.common_methods_invocations import op_db

import clnorm
import clnorm.torch as ct
from clnorm import _call

FUNCTIONS = {
    "nn.functional.layer_norm": ct.layer_norm,
    "nn.functional.rms_norm": ct.rms_norm,
    "softmax": ct.softmax,
    "nn.functional.gelu": ct.gelu,
    "nn.functional.group_norm": ct.group_norm,
}
OPERATORS = [info for info in op_db if info.name in FUNCTIONS and not info.variant_test_name]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def test_pytorch_has_samples_of_all_functions():
    assert {info.name for info in OPERATORS} == set(FUNCTIONS)


def as_float64(value):
    if isinstance(value, torch.Tensor):
        return value.detach().double().requires_grad_(value.requires_grad)
    return value


def gradients(function, sample, dy):
    """The result and the gradients of a sample's tensors."""
    tensors = [t for t in (sample.input, *sample.args, *sample.kwargs.values()) if isinstance(t, torch.Tensor)]
    y = function(sample.input, *sample.args, **sample.kwargs)
    wanted = [t for t in tensors if t.requires_grad]
    return (y, *torch.autograd.grad(y, wanted, dy.to(y.dtype) if dy is not None else torch.ones_like(y)))


def assert_close(got, expected, name, inherited=0.0):
    """The error is within the rounding of the result, and 64 roundings of the arithmetic of a number as large as the
    largest result. inherited: the error of the inputs."""
    arithmetic = 2.0 ** (-53 if got.dtype == torch.float64 else -24)
    largest = max(1.0, expected.abs().max().item()) if expected.numel() else 1.0
    allowed = torch.finfo(got.dtype).eps / 2 * expected.abs() * 1.01 + 64 * arithmetic * largest + inherited
    assert got.shape == expected.shape
    worst = ((got.double() - expected).abs() - allowed).max().item() if got.numel() else -1
    assert worst <= 0, f"{name}: {worst} more than is allowed"


def inherited_error(name, dtype, dy):
    largest = dy.abs().max().item() if dy.numel() else 0.0
    if name == "softmax":  # its gradient, y · (dy − Σ y · dy), has the rounding of y twice
        return torch.finfo(dtype).eps * largest
    if dtype == torch.float64:  # PyTorch's error: with one column, terms of dy · weight · rstd (316 at eps 1e-5) cancel
        return 16 * 2.0**-53 * largest * 10 * 316
    return 0.0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("info", OPERATORS, ids=lambda info: info.name)
def test_samples_of_pytorch(info, dtype):
    torch.manual_seed(1)
    function, count = FUNCTIONS[info.name], 0
    samples = list(info.sample_inputs("cpu", dtype, requires_grad=True))
    samples += list(info.reference_inputs("cpu", dtype, requires_grad=True))
    for sample in samples:
        if sample.kwargs.get("eps", 0) < 0:  # PyTorch computes a root, possibly of a negative number
            with pytest.raises(ValueError, match="eps is"):
                function(sample.input, *sample.args, **sample.kwargs)
            continue
        # The default eps of rms_norm follows the dtype of the arithmetic. The reference in float64 needs the same eps.
        kwargs = dict(sample.kwargs)
        if info.name.endswith("rms_norm") and kwargs.get("eps") is None and len(sample.args) < 3:
            kwargs["eps"] = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
        exact = type(sample)(as_float64(sample.input), args=tuple(map(as_float64, sample.args)),
                             kwargs={name: as_float64(value) for name, value in kwargs.items()})
        y = function(sample.input, *sample.args, **sample.kwargs)
        dy = torch.randn(y.shape, dtype=torch.float64).to(dtype)
        name = f"{info.name} {tuple(sample.input.shape)} {sample.args} {sample.kwargs}"
        results, references = gradients(function, sample, dy), gradients(info.op, exact, dy)
        assert_close(results[0], references[0], name)
        inherited = inherited_error(info.name, dtype, dy)
        for got, expected in zip(results[1:], references[1:]):
            assert_close(got, expected, name, inherited)
        count += 1
    assert count >= 8


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_default_eps_of_rms_norm_is_that_of_pytorch(dtype):
    x = torch.full((2, 16), 1e-4, dtype=dtype)  # its mean square is less than the eps of 16 bits
    expected = torch.nn.functional.rms_norm(x, (16,))
    torch.testing.assert_close(ct.rms_norm(x, 16), expected)
    torch.testing.assert_close(ct.RMSNorm(16, dtype=dtype)(x), expected)


@pytest.mark.parametrize("info", [i for i in OPERATORS if i.error_inputs_func], ids=lambda info: info.name)
def test_error_inputs_of_pytorch_are_refused(info):
    for error in info.error_inputs("cpu"):
        sample = error.sample_input
        with pytest.raises((ValueError, RuntimeError, TypeError, IndexError)):
            FUNCTIONS[info.name](sample.input, *sample.args, **sample.kwargs)


def inputs(count, *shape, dtype=torch.float64):
    torch.manual_seed(2)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(count)]


X, R, Z = inputs(3, 5, 24)
W, B = inputs(2, 24)
S, C = (table.detach() for table in inputs(2, 5, 6))
POSITION = torch.tensor([4, 0, 2, 2, 1])
GRADIENTS = {
    "layer": (lambda x, w, b: ct.layer_norm(x, 24, w, b), (X, W, B)),
    "two dimensions": (lambda x, w: ct.layer_norm(x.reshape(5, 4, 6), (4, 6), w.reshape(4, 6)), (X, W)),
    "rms": (lambda x, w: ct.rms_norm(x, 24, w), (X, W)),
    "groups": (lambda x, w: ct.rms_norm(x, 24, w, group_size=8), (X, W)),
    "gate": (lambda x, w, z: ct.rms_norm(x, 24, w, z=z), (X, W, Z)),
    "gate first": (lambda x, w, z: ct.rms_norm(x, 24, w, z=z, gate="sigmoid", gate_first=True), (X, W, Z)),
    "activation": (lambda x, w, b: ct.layer_norm(x, 24, w, b, activation="gelu"), (X, W, B)),
    "residual": (lambda x, w, r: ct.rms_norm(x, 24, w, residual=r), (X, W, R)),
    "dropout": (lambda x, w, r: ct.rms_norm(x, 24, w, residual=r, dropout=0.4, seed=9), (X, W, R)),
    "dropout alone": (lambda x, w: ct.layer_norm(x, 24, w, dropout=0.4, seed=(9, 2)), (X, W)),
    "row scale": (lambda x, w, r: ct.layer_norm(x, 24, w, residual=r, row_scale=S[:, 0]), (X, W, R)),
    "weights by row": (lambda x, w, b: ct.layer_norm(x, 24, w, b, weight_repeat=1), (X, *inputs(2, 5, 24))),
    "rope": (lambda x, w: ct.rms_norm(x, 24, w, rope=clnorm.Rope(C, S, POSITION)), (X, W)),
    "rope by heads": (lambda x, w: ct.rms_norm(x, 24, w, group_size=12, rope=clnorm.Rope(C, S, POSITION, "interleaved")),
                      (X, W)),
    "instance": (lambda x, w, b: ct.instance_norm(x.reshape(2, 6, 2, 5), w[:6], b[:6]),
                 (X.detach().reshape(-1).requires_grad_(), W, B)),
    "group": (lambda x, w, b: ct.group_norm(x.reshape(2, 6, 2, 5), 3, w[:6], b[:6], activation="silu"),
              (X.detach().reshape(-1).requires_grad_(), W, B)),
    "group, channels last": (
        lambda x, w: ct.group_norm(x.reshape(2, 2, 5, 6).movedim(-1, 1), 2, w[:6]),
        (X.detach().reshape(-1).requires_grad_(), W)),
    "group, residual": (
        lambda x, w, b, r: ct.group_norm(x.reshape(2, 6, 10), 3, w[:6], b[:6], residual=r.reshape(2, 6, 10),
                                         activation="silu"),
        (X, W, B, R)),
    "group, residual, channels last": (
        lambda x, r: ct.group_norm(x.reshape(2, 2, 5, 6).movedim(-1, 1), 2,
                                   residual=r.reshape(2, 2, 5, 6).movedim(-1, 1)), (X, R)),
    "instance, residual": (lambda x, r: ct.instance_norm(x.reshape(2, 6, 10), residual=r.reshape(2, 6, 10)), (X, R)),
    "softmax": (ct.softmax, (X,)),
    "softmax of columns": (lambda x: ct.softmax(x, 0), (X,)),
    "gelu": (ct.gelu, (X,)),
    "gelu tanh": (lambda x: ct.gelu(x, "tanh"), (X,)),
    "l2": (ct.l2_norm, (X, W)),
    "l2, weights by row": (lambda x, w: ct.l2_norm(x, w, eps_mode="add", weight_repeat=1), (X, *inputs(1, 5, 24))),
    "l2, groups": (lambda x, w: ct.l2_norm(x, w, 1e-3, "add", group_size=8), (X, W)),
}

@pytest.mark.parametrize("name", GRADIENTS)
def test_gradcheck(name):
    function, arguments = GRADIENTS[name]
    assert torch.autograd.gradcheck(function, arguments)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64, torch.uint32, torch.uint64], ids=str)
def test_positions_of_any_integers(dtype):
    rope = clnorm.Rope(C, S, POSITION.to(dtype))
    assert torch.equal(ct.rms_norm(X, 24, rope=rope), ct.rms_norm(X, 24, rope=clnorm.Rope(C, S, POSITION.int())))


def test_positions_outside_of_the_tables():
    for far in (2**32, 2**31, -(2**32), -(2**32) + 1):
        position = torch.tensor([0, 1, far, 3, 4])
        y = ct.rms_norm(X, 24, rope=clnorm.Rope(C, S, position))
        assert y[:, :12].isnan().all(1).tolist() == [False, False, True, False, False]
    for dtype in (torch.float32, torch.bool):
        with pytest.raises(ValueError, match="rope.position: expected integers, got torch"):
            ct.rms_norm(X, 24, rope=clnorm.Rope(C, S, POSITION.to(dtype)))


@pytest.mark.parametrize("name", GRADIENTS)
def test_double_backward_is_refused(name):
    function, arguments = GRADIENTS[name]
    results = function(*arguments)
    y = results if isinstance(results, torch.Tensor) else results[0]
    gradient, = torch.autograd.grad((y * y).sum(), arguments[0], create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated again"):
        gradient.sum().backward()


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch itself uses torch.jit.script
def test_forward_mode_is_refused():
    x = X.detach()
    with pytest.raises(RuntimeError, match="x: has a tangent"):
        torch.func.jvp(lambda t: ct.layer_norm(t, 24), (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        assert ct.gelu(x).shape == x.shape
        with pytest.raises(RuntimeError, match="x: has a tangent"):
            ct.gelu(torch.autograd.forward_ad.make_dual(x, x))


TRANSFORMED = {
    "layer": (lambda x, w, b: ct.layer_norm(x, 24, w, b), lambda x, w, b: F.layer_norm(x, (24,), w, b)),
    "residual": (lambda x, w, b: sum(ct.rms_norm(x, 24, w, residual=x * b)),
                 lambda x, w, b: F.rms_norm(x + x * b, (24,), w) + x + x * b),
    "softmax": (lambda x, w, b: ct.softmax(x * w) * b, lambda x, w, b: torch.softmax(x * w, -1) * b),
    "gelu": (lambda x, w, b: ct.gelu(x * w) * b, lambda x, w, b: F.gelu(x * w) * b),
    "l2": (lambda x, w, b: ct.l2_norm(x, w) * b, lambda x, w, b: F.normalize(x, dim=-1) * w * b),
    "l2, groups": (lambda x, w, b: ct.l2_norm(x, w, group_size=8) * b,
                   lambda x, w, b: F.normalize(x.unflatten(-1, (3, 8)), dim=-1).flatten(-2) * w * b),
    "group": (lambda x, w, b: ct.group_norm(x.reshape(-1, 24, 1), 4, w, b),
              lambda x, w, b: F.group_norm(x.reshape(-1, 24, 1), 4, w, b)),
    "group, residual": (lambda x, w, b: sum(ct.group_norm(x.reshape(-1, 24, 1), 4, w, b,
                                                          residual=(x * b).reshape(-1, 24, 1))),
                        lambda x, w, b: (F.group_norm((x + x * b).reshape(-1, 24, 1), 4, w, b)
                                         + (x + x * b).reshape(-1, 24, 1))),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap calls the operator for each sample
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_of_torch_func(name):
    """Gradients, gradients of each sample, and Jacobians equal those of PyTorch's functions."""
    ours, theirs = TRANSFORMED[name]
    tensors = x, w, b = X.detach().unflatten(0, (5, 1)), W.detach(), B.detach()

    def results(function):
        def loss(*arguments):
            return function(*arguments).square().sum()

        return [
            *torch.func.grad(loss, (0, 1, 2))(*tensors),
            *torch.vmap(torch.func.grad(loss, (0, 1, 2)), (0, None, None))(*tensors),
            torch.func.grad(lambda weight: torch.vmap(lambda row: function(row, weight, b))(x).square().sum())(w),
            torch.func.jacrev(lambda weight: function(x[0], weight, b))(w),
        ]

    for got, expected in zip(results(ours), results(theirs)):
        torch.testing.assert_close(got, expected)
    with pytest.raises(RuntimeError, match="cannot be differentiated again"):
        torch.func.grad(lambda t: torch.func.grad(lambda u: ours(u, w, b).square().sum())(t).sum())(x)
    with pytest.raises(RuntimeError, match="clnorm has no forward-mode derivatives"):
        torch.func.hessian(lambda t: ours(t, w, b).square().sum())(x)


OPS = torch.ops.clnorm
CHECKED = {
    "norm": (OPS.norm.default, (X, W, B, R, None, *[None] * 5, "layer_norm", [24], 1e-5, 0, 0.0, None, None, "silu", False,
                                0.0, "neox", 1, False)),
    "gated norm": (OPS.norm.default, (X, W, None, None, Z, *[None] * 4, torch.tensor([3]), "rms_norm", [24], 1e-5, 8, 1.0,
                                      None, "gelu", "silu", False, 0.1, "neox", 1, False)),
    "rotated norm": (OPS.norm.default, (X, inputs(1, 5, 24)[0], None, R, None, S[:, 0], C, S, POSITION.int(),
                                        torch.tensor([3, 4]), "rms_norm", [24], 1e-5, 0, 1.0, 1, None, "silu", False, 0.1,
                                        "neox", 1, True)),
    "group_norm": (OPS.group_norm.default,
                   (X.detach().reshape(2, 10, 6).requires_grad_(), None, None, None, 5, 1e-5, "silu", False)),
    "group_norm, residual": (OPS.group_norm.default,
                             (X.detach().reshape(2, 10, 6).requires_grad_(), B[:6].detach().requires_grad_(), None,
                              R.detach().reshape(2, 10, 6).requires_grad_(), 3, 1e-5, None, True)),
    "group_norm, residual of another dtype": (OPS.group_norm.default,
                                              (X.detach().bfloat16().reshape(2, 6, 10).requires_grad_(), None, None,
                                               R.detach().float().reshape(2, 6, 10).requires_grad_(), 3, 1e-5, None,
                                               False)),
    "softmax": (OPS.softmax.default, (X, True)),
    "gelu": (OPS.gelu.default, (X, "tanh")),
    "l2_norm": (OPS.l2_norm.default, (X, W, 1e-12, "add", 8, None, True)),
    "l2_norm, weights by row": (OPS.l2_norm.default, (X, inputs(1, 5, 24)[0], 1e-12, "floor", 0, 1, False)),
}


@pytest.mark.parametrize("name", CHECKED)
def test_opcheck(name):
    assert set(torch.library.opcheck(*CHECKED[name]).values()) == {"SUCCESS"}


def test_batch_invariance_reaches_forward_and_backward():
    for function in (lambda x: ct.layer_norm(x, 24, batch_invariant=True), lambda x: ct.softmax(x, batch_invariant=True)):
        _call._records.clear()
        x = torch.randn(3, 24, requires_grad=True)
        function(x).sum().backward()
        assert [record.kept[0].batch_invariant for record in _call._records.values()] == [1, 1]


def test_gradients_of_frozen_weights_are_not_computed():
    x, frozen, weight = torch.randn(2, 24, requires_grad=True), torch.ones(24), torch.ones(24, requires_grad=True)
    for y, sums in ((ct.group_norm(x, 4, frozen, weight), (False, True)), (ct.l2_norm(x, weight), (True,)),
                    (ct.group_norm(x, 4, frozen, frozen), (False, False)), (ct.l2_norm(x, frozen), (False,))):
        _call._records.clear()
        y.sum().backward()
        (desc,) = [record.kept[0] for record in _call._records.values()]
        assert [getattr(desc, name).dtype != 0 for name in ("dweight", "dbias")[: len(sums)]] == list(sums)


@pytest.mark.parametrize("name", ["norm", "gated norm", "group_norm", "group_norm, residual", "l2_norm"])
def test_statistics_of_operators_have_no_gradient(name):
    operator, arguments = CHECKED[name]
    y, *statistics, rstd = operator(*arguments)
    mean = statistics[-1] if statistics else rstd
    assert y.requires_grad and not mean.requires_grad and not rstd.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        rstd.sum().backward()


@pytest.mark.parametrize("call", [
    lambda x: ct.softmax(x, 0), ct.gelu, ct.l2_norm, lambda x: ct.group_norm(x, 2), ct.instance_norm,
])
def test_none_for_x_is_refused_by_name(call):
    with pytest.raises(TypeError, match="x: expected a torch.Tensor, got NoneType"):
        call(None)


def test_group_norm_of_a_number_is_refused_by_name():
    with pytest.raises(ValueError, match=r"x: expected shape \(samples, channels"):
        ct.group_norm(torch.tensor(1.0), 1)
