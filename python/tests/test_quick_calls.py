"""Repeated calls on arrays and tensors, which are found by the arrays' layouts and run in one step."""

import ml_dtypes
import numpy
import pytest
import torch

import clnorm
from clnorm import _call


@pytest.fixture
def only_quick(monkeypatch):
    """Returns a function after which any call that is not a repeated one fails."""

    def fail(*_):
        raise AssertionError("the call was not a repeated one")

    return lambda: monkeypatch.setattr(_call, "_backend", fail)


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float16, ml_dtypes.bfloat16])
def test_a_second_call_is_quick(rng, dtype, only_quick):
    x, dy, residual = rng.standard_normal((3, 4, 96)).astype(dtype)
    weight, y, dx = x[0], numpy.empty((4, 200), dtype)[:, 50:146], numpy.empty_like(x)

    def calls():
        norm = clnorm.rms_norm(x, weight, residual=residual, dropout=0.5, seed=(2**64 - 1, 3), save_stats=True)
        clnorm.layer_norm(x, weight, out=y)
        gradients = clnorm.layer_norm_backward(dy, x, weight, out=dx)
        return [*norm[:2], norm.rstd, y.copy(), gradients.dx.copy(), gradients.dweight, clnorm.softmax(x)]

    expected = calls()
    only_quick()
    for result, other in zip(calls(), expected):
        assert result.dtype == other.dtype and (result == other).all()


def layouts():
    """Arrays of 64 columns, each in another layout."""
    x = numpy.random.default_rng(1).standard_normal((6, 2, 128))
    for dtype in (numpy.float32, numpy.float64, numpy.float16, ml_dtypes.bfloat16):
        a = x.astype(dtype)
        yield from (a[..., :64], a[::2, :, :64], a[::-1, :, 64:], a[:, 0, :64], a[0, 0, :64], a[:, :, ::2], a[1:1, :, :64])
        yield a.reshape(1, 1, 1, 1, 1, 1, 1, 1, -1, 64)
        if dtype is not ml_dtypes.bfloat16:
            yield a[..., :64].astype(a.dtype.newbyteorder())


def test_layouts_are_distinguished():
    """Results are those of calls without kept ones, before and after all layouts were kept."""
    alone = []
    for x in layouts():
        _call._quick.clear()
        alone.append(clnorm.layer_norm(x))
    for _ in range(2):
        for x, expected in zip(layouts(), alone):
            y = clnorm.layer_norm(x)
            assert y.dtype == expected.dtype and y.shape == expected.shape and (y == expected).all()


def test_absent_inputs_and_options_are_distinguished(rng):
    x, weight = rng.standard_normal((2, 64)).astype("f4")
    for _ in range(2):
        by_weight, by_bias = clnorm.layer_norm(x, weight), clnorm.layer_norm(x, None, weight)
        assert numpy.abs(by_bias - weight - clnorm.layer_norm(x)).max() < 1e-5
        assert numpy.abs(by_weight - weight * clnorm.layer_norm(x)).max() < 1e-5
        assert (clnorm.layer_norm(x, eps=9.0) != clnorm.layer_norm(x)).any()
        assert (clnorm.rms_norm(x) != clnorm.layer_norm(x)).any()


def test_arguments_are_refused_after_a_call_was_kept(rng):
    x, y = rng.standard_normal((2, 3, 64)).astype("f4")
    for _ in range(2):
        clnorm.gelu(x, out=y)
    y.flags.writeable = False
    with pytest.raises(ValueError, match="out: expected an array that can be written"):
        clnorm.gelu(x, out=y)
    with pytest.raises(ValueError, match="x: expected a NumPy array"):
        clnorm.gelu(numpy.ma.masked_array(x))
    with pytest.raises(TypeError, match="eps: expected a number"):
        clnorm.layer_norm(x, eps=[1])


def test_an_overlap_is_named_by_a_quick_call(rng):
    memory = rng.standard_normal(200).astype("f4")
    x = memory[:64]
    for _ in range(2):
        clnorm.gelu(x, out=memory[64:128])
        with pytest.raises(ValueError, match="out: expected memory that does not overlap x"):
            clnorm.gelu(x, out=memory[32:96])


def test_a_dtype_at_a_reused_address(rng):
    """Dtypes with metadata are separate objects, whose addresses are reused."""
    values = rng.standard_normal((2, 64))
    natives = [values.astype(numpy.dtype("<f4", metadata={"i": i})) for i in range(100)]
    addresses = {id(x.dtype) for x in natives}
    for x in natives:
        clnorm.softmax(x)
    del natives, x
    others = [values.astype(numpy.dtype(">f4", metadata={"i": i})) for i in range(300)]
    assert not addresses & {id(x.dtype) for x in others}


def tensors_of(rng):
    return [torch.from_numpy(array) for array in rng.standard_normal((3, 4, 96)).astype("f4")]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_second_call_on_tensors_is_quick(rng, dtype, only_quick):
    x, dy, residual = (tensor.to(dtype) for tensor in tensors_of(rng))
    weight, y, dx = torch.nn.Parameter(x[0].clone()), torch.empty(4, 200, dtype=dtype)[:, 50:146], torch.empty_like(x)

    def calls():
        with torch.no_grad():
            norm = clnorm.rms_norm(x, weight, residual=residual, dropout=0.5, seed=(2**64 - 1, 3), save_stats=True)
            clnorm.layer_norm(x, weight, out=y)
            gradients = clnorm.layer_norm_backward(dy, x, weight, out=dx)
            return [*norm[:2], norm.rstd, y.clone(), gradients.dx.clone(), gradients.dweight, clnorm.softmax(x[::2])]

    expected = calls()
    version = y._version
    only_quick()
    for result, other in zip(calls(), expected):
        assert type(result) is torch.Tensor and result.dtype == other.dtype and torch.equal(result, other)
    assert y._version > version


def test_large_results_are_quick_too(rng, only_quick):
    for of in (numpy.asarray, torch.from_numpy):
        for rows in (1100, 8300):  # results above 4 and 32 MiB
            x = of(rng.standard_normal((rows, 1024)).astype("f4"))
            _call._quick.clear()
            expected = clnorm.gelu(x)
            y = clnorm.gelu(x)
            assert len(_call._quick) == 1 and type(y) is type(x) and bool((y == expected).all())


def test_tensors_that_are_not_plain_memory(rng):
    x, *_ = tensors_of(rng)
    for _ in range(2):
        expected = clnorm.layer_norm(x)
    with pytest.raises(ValueError, match="x: requires a gradient"):
        clnorm.layer_norm(x.clone().requires_grad_())
    for other in (torch._neg_view(x), x.to_sparse(), torch._efficientzerotensor((4, 96)), torch._to_functional_tensor(x)):
        with pytest.raises(ValueError, match="x: expected a"):
            clnorm.layer_norm(other)
    assert torch.equal(clnorm.layer_norm(x.as_subclass(type("Mine", (torch.Tensor,), {}))), expected)
    assert torch.equal(torch.from_numpy(clnorm.layer_norm(x.numpy())), expected)
    with pytest.raises(ValueError, match="weight: expected a torch tensor, as x is"):
        clnorm.layer_norm(x, numpy.ones(96, "f4"))


def test_tensors_without_elements_or_dimensions_are_distinguished():
    for _ in range(2):
        assert clnorm.gelu(torch.empty(0, 64)).shape == (0, 64) and clnorm.gelu(torch.empty(64, 0)).shape == (64, 0)
        assert clnorm.gelu(torch.tensor(0.0)) == 0 and clnorm.gelu(torch.zeros(1)).shape == (1,)


def test_types_of_options_are_distinguished(rng):
    """1, 1.0 and True are equal, and so are their hashes."""
    x = rng.standard_normal((4, 64)).astype("f4")
    for _ in range(2):
        clnorm.layer_norm(x, group_size=1, eps=1.0, save_stats=True)
        clnorm.layer_norm(x, normalized_shape=(64,))
    for option, value in (("group_size", True), ("group_size", 1.0), ("eps", True), ("save_stats", 1),
                          ("normalized_shape", (64.0,))):
        with pytest.raises(TypeError, match=f"{option}: expected"):
            clnorm.layer_norm(x, **{"group_size": 1, "eps": 1.0, "save_stats": True, option: value})


def test_mutable_options_are_read_in_each_call(rng):
    x, eps = rng.standard_normal((4, 64)).astype("f4"), numpy.array(1.0)
    first = [clnorm.layer_norm(x, eps=eps) for _ in range(2)][1]
    eps[()] = 4.0
    second = clnorm.layer_norm(x, eps=eps)
    assert (second == clnorm.layer_norm(x, eps=4.0)).all() and (second != first).any()


def test_kept_calls_use_a_newly_selected_device(rng, monkeypatch):
    x = rng.standard_normal((4, 64)).astype("f4")
    for _ in range(2):
        clnorm.gelu(x)
    hosts = []
    run = _call._device.selected_host
    monkeypatch.setattr(_call._device, "selected_host", lambda: hosts.append(1) or run())
    clnorm.gelu(x)
    assert hosts == []
    clnorm.select(clnorm.select())
    clnorm.gelu(x)
    clnorm.gelu(x)
    assert hosts == [1]
