"""group_norm with a residual and l2_norm of segments in clnorm.torch, compared with PyTorch's autograd in float64."""

import pytest
import torch
import torch.nn.functional as F

import clnorm
import clnorm.torch as ct
from clnorm import _call

PAIRS = [  # the dtypes of x and of the residual
    (torch.float32, torch.float32), (torch.float64, torch.float64), (torch.float16, torch.float16),
    (torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16),
]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
CASES = [
    ((2, 6, 5), 3, "dense"), ((3, 4, 7, 9), 2, "channels last"), ((1, 15, 1), 3, "strided"), ((2, 3, 3, 5, 2), 1, "mixed"),
]
ACTIVATIONS = {None: lambda n: n, "silu": F.silu, "gelu": F.gelu}


def assert_close(got, expected, inherited=0.0):
    """The error is within the rounding of the result, 64 roundings of the arithmetic of a number as large as the largest
    result, and `inherited` times that number."""
    arithmetic = 2.0 ** (-53 if got.dtype == torch.float64 else -24)
    largest = max(1.0, expected.abs().max().item())
    allowed = torch.finfo(got.dtype).eps / 2 * expected.abs() * 1.01 + (64 * arithmetic + inherited) * largest
    assert got.shape == expected.shape and not got.isnan().any()
    assert ((got.double() - expected).abs() <= allowed).all(), (got.double() - expected).abs().max()


def leaf(*shape, dtype):
    return torch.randn(shape).to(dtype).requires_grad_()


def exact(tensor):
    return tensor.detach().double().requires_grad_()


def views(x, residual, layout):
    """The tensors in another memory format; the residual alone, where they are mixed."""
    if layout == "strided":
        return [torch.stack([t, t], -1)[..., 0] for t in (x, residual)]
    last = [t.movedim(1, -1).contiguous().movedim(-1, 1) for t in (x, residual)]
    return {"dense": [x, residual], "channels last": last, "mixed": [x, last[1]]}[layout]


@pytest.mark.parametrize("shape,groups,layout", CASES, ids=str)
@pytest.mark.parametrize("dtype,of_residual", PAIRS, ids=str)
def test_group_norm_with_a_residual(dtype, of_residual, shape, groups, layout):
    torch.manual_seed(groups)
    x, residual = leaf(*shape, dtype=dtype), leaf(*shape, dtype=of_residual)
    weight, bias = leaf(shape[1], dtype=dtype), leaf(shape[1], dtype=dtype)
    dy, ds = torch.randn(shape).to(dtype), torch.randn(shape).to(of_residual)
    activation = list(ACTIVATIONS)[groups % 3]
    view, of_sum = views(x, residual, layout)
    y, s = ct.group_norm(view, groups, weight, bias, 1e-3, residual=of_sum, activation=activation)
    assert (y.dtype, s.dtype) == (dtype, of_residual)
    got = torch.autograd.grad((y, s), (x, residual, weight, bias), (dy, ds))
    assert [g.dtype for g in got] == [dtype, of_residual, dtype, dtype]

    x64, residual64, weight64, bias64 = tensors = [exact(t) for t in (x, residual, weight, bias)]

    def norm(of):
        return ACTIVATIONS[activation](F.group_norm(of, groups, weight64, bias64, 1e-3))

    total = x64 + residual64
    assert_close(s, total.detach())
    assert_close(y, norm(total).detach())
    # The backward reads s as it was rounded. Its mean and rstd, which divides, are those before the rounding.
    rounded = total + (s.detach().double() - total).detach()
    wanted = torch.autograd.grad((norm(rounded), total), tensors, (dy.double(), ds.double()))
    rounding = torch.finfo(of_residual).eps / 2 if of_residual in (torch.bfloat16, torch.float16) else 0.0
    for g, w in zip(got, wanted):
        assert_close(g, w, 4 * rounding)


def test_the_gradient_of_a_residual_alone():
    x, residual = torch.randn(2, 6, 5).bfloat16(), leaf(2, 6, 5, dtype=torch.float32)
    y, s = ct.group_norm(x, 3, residual=residual)
    (got,) = torch.autograd.grad((y.float() * x).sum() + s.square().sum(), residual)
    again = exact(residual)
    total = x.double() + again
    (wanted,) = torch.autograd.grad((F.group_norm(total, 3) * x.double()).sum() + total.square().sum(), again)
    assert_close(got, wanted)


def test_compilers_expect_the_dtypes_of_gradients_beside_a_residual():
    x, s, statistics = torch.randn(2, 6, 5).bfloat16(), torch.randn(2, 6, 5), torch.ones(2, 3)
    options = [statistics, statistics, [False, False, True], torch.bfloat16, 3, 1e-5, None, False]
    operator = torch.ops.clnorm.group_norm_backward.default
    checked = torch.library.opcheck(operator, (x, None, s, None, None, *options), test_utils="test_faketensor")
    assert set(checked.values()) == {"SUCCESS"}


def test_one_gradient_of_x_and_residual_serves_both():
    for dtype, outputs in ((torch.float32, 1), (torch.bfloat16, 2)):
        x, residual = leaf(2, 6, 5, dtype=dtype), leaf(2, 6, 5, dtype=torch.float32)
        y, _ = ct.group_norm(x, 3, residual=residual)
        _call._records.clear()
        _call._quick.clear()
        torch.autograd.grad(y, (x, residual), torch.ones_like(y))
        (desc,) = [record.kept[0] for record in _call._records.values()]
        assert (desc.dx.dtype != 0) + (desc.dresidual.dtype != 0) == outputs


@pytest.mark.parametrize("channels_last", [False, True])
def test_results_with_a_residual_have_the_format_of_x(channels_last):
    x, residual = torch.randn(2, 6, 5, 4), torch.randn(2, 6, 5, 4)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    y, s = ct.group_norm(x, 3, residual=residual)
    for result in (y, s):
        assert result.is_contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
    assert torch.equal(s, x + residual)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_instance_norm_with_a_residual(dtype):
    x, residual = leaf(2, 5, 7, dtype=dtype), leaf(2, 5, 7, dtype=dtype)
    y, s = ct.instance_norm(x, residual=residual)
    assert_close(s, x.detach().double() + residual.detach().double())
    assert_close(y, F.instance_norm(x.detach().double() + residual.detach().double()))


@pytest.mark.parametrize("message,call", [
    (r"residual: expected the shape of x, \(2, 6, 5\), got \(2, 6\)", lambda x: ct.group_norm(x, 3, residual=x[..., 0])),
    (r"residual: expected the shape of x, \(2, 6, 5\), got \(6, 5\)", lambda x: ct.instance_norm(x, residual=x[0])),
    ("residual: expected a dtype of float32, float16, bfloat16, as x has float32, got float64",
     lambda x: ct.group_norm(x, 3, residual=x.double())),
    ("residual: expected a tensor on cpu, as x is, got one on meta", lambda x: ct.group_norm(x, 3, residual=x.to("meta"))),
    ("group_size is 4: expected a divisor of columns, 5", lambda x: ct.l2_norm(x, group_size=4)),
])
def test_what_is_refused(message, call):
    for requires_grad in (False, True):
        with pytest.raises(ValueError, match=f"^{message}"):
            call(torch.ones(2, 6, 5, requires_grad=requires_grad))


@pytest.mark.parametrize("message,call", [
    ("residual: expected a torch.Tensor, got list", lambda x: ct.group_norm(x, 3, residual=[1.0])),
    ("group_size: expected an integer, 0 or more, got -1", lambda x: ct.l2_norm(x, group_size=-1)),
    ("batch_invariant: expected True or False, got 1", lambda x: ct.l2_norm(x, batch_invariant=1)),
])
def test_options_of_another_type_are_type_errors(message, call):
    with pytest.raises(TypeError, match=f"^{message}"):
        call(torch.ones(2, 6, 5))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("columns,group_size,eps_mode", [(48, 8, "add"), (33, 11, "floor"), (35, 0, "floor")])
def test_l2_norm_of_segments(dtype, columns, group_size, eps_mode):
    torch.manual_seed(columns)
    whole, weight = leaf(3, 5, columns + 4, dtype=dtype), leaf(columns, dtype=dtype)
    dy = torch.randn(3, 5, columns).to(dtype)
    y = ct.l2_norm(whole[..., 1:-3], weight, 1e-3, eps_mode, group_size=group_size)
    got = torch.autograd.grad(y, (whole, weight), dy)
    whole64, weight64 = exact(whole), exact(weight)
    segments = whole64[..., 1:-3].unflatten(-1, (-1, group_size or columns))
    length = segments.square().sum(-1, keepdim=True)
    length = (length + 1e-3).sqrt() if eps_mode == "add" else length.sqrt().clamp_min(1e-3)
    expected = (segments / length).flatten(-2) * weight64
    assert_close(y, expected.detach())
    for g, w in zip(got, torch.autograd.grad(expected, (whole64, weight64), dy.double())):
        assert_close(g, w)


def test_batch_invariance_of_l2_norm_reaches_forward_and_backward():
    for on in (True, False):
        _call._records.clear()
        _call._quick.clear()
        x = torch.randn(3, 24, requires_grad=True)
        ct.l2_norm(x, batch_invariant=on, group_size=8).sum().backward()
        descriptors = [record.kept[0] for record in _call._records.values()]
        assert [(desc.batch_invariant, desc.group_size) for desc in descriptors] == [(on, 8)] * 2
        assert descriptors[0].save_norm and descriptors[1].norm_given
