"""Tensors that calls take and refuse: devices, layouts, memory, writes that autograd notices."""

import numpy
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import clnorm
import clnorm.torch as ct
from clnorm import _call

X = torch.randn(5, 24, dtype=torch.float64, requires_grad=True)


def test_a_given_scale_is_a_tensor():
    x = torch.randn(4, 32)
    out = clnorm.quantize(x, scale=0.01)
    assert torch.equal(clnorm.dequantize(*out), out.q.float() * torch.tensor(0.01))


def test_rows_of_weights_of_l2_norm():
    x, weight = torch.randn(2, 3, 4, 16), torch.randn(3, 16)
    expected = torch.nn.functional.normalize(x, dim=-1) * weight[:, None]
    torch.testing.assert_close(ct.l2_norm(x, weight, weight_repeat=4), expected)
    with pytest.raises(ValueError, match="weight_repeat: expected a number that, times 3 rows"):
        ct.l2_norm(x, weight, weight_repeat=5)


def test_other_devices_and_recorded_gradients_are_refused():
    with pytest.raises(ValueError, match="requires a gradient"):
        clnorm.layer_norm(X)
    assert clnorm.layer_norm(X.detach()).dtype == torch.float64
    with FakeTensorMode():  # a CUDA tensor where there is no GPU
        on_gpu = torch.empty(2, 8, device="cuda")
        for function in (clnorm.layer_norm, ct.softmax, ct.LayerNorm(8), lambda x: ct.FusedAddRMSNorm(8)(x, x)):
            with pytest.raises(ValueError, match="x: expected a CPU tensor, got one on cuda:0: clnorm computes with"):
                function(on_gpu)
    with pytest.raises(ValueError, match="x: expected a CPU tensor, got one on meta"):
        clnorm.layer_norm(torch.empty(2, 8, device="meta"))
    with pytest.raises(ValueError, match="x: expected a tensor that is no negative view"):
        clnorm.layer_norm(torch._neg_view(X.detach()))
    with pytest.raises(TypeError, match="x: expected a torch.Tensor, got ndarray"):
        ct.gelu(X.detach().numpy())
    with pytest.raises(IndexError, match="dim: expected a dimension"):
        ct.softmax(X, 2)
    with pytest.raises(ValueError, match="x: expected more than one position"):
        ct.instance_norm(X)
    with pytest.raises(ValueError, match="row_scale: expected a tensor that does not require a gradient"):
        ct.rms_norm(X, 24, row_scale=X[:, 0])


@pytest.mark.parametrize("requires_grad", [False, True])
def test_tensors_of_two_devices_are_refused(requires_grad):
    x, on_meta = torch.ones(2, 8, requires_grad=requires_grad), torch.ones(8, device="meta")
    calls = {
        "weight": [
            lambda: ct.layer_norm(x, 8, on_meta), lambda: ct.group_norm(x, 2, on_meta), lambda: ct.l2_norm(x, on_meta),
        ],
        "residual": [lambda: ct.rms_norm(x, 8, residual=on_meta)],
        "row_scale": [lambda: ct.rms_norm(x, 8, row_scale=on_meta)],
        "rope.cos": [lambda: ct.rms_norm(x, 8, rope=clnorm.Rope(on_meta, on_meta))],
    }
    for name, functions in calls.items():
        for function in functions:
            with pytest.raises(ValueError, match=f"^{name}: expected a tensor on cpu, as x is, got one on meta"):
                function()
    assert ct.LayerNorm(8, device="meta")(torch.ones(2, 8, device="meta")).is_meta


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_without_strides_or_memory_are_refused():
    x, freed = torch.ones(2, 8), torch.ones(2, 8)
    freed.untyped_storage().resize_(0)
    kept = torch.ones(2, 8)  # a kept call has the layout of `freed`
    for function in (clnorm.gelu, ct.gelu):
        function(kept)
        for other in (x.to_sparse(), x.to_mkldnn(), torch.nested.nested_tensor([x, x])):
            with pytest.raises(ValueError, match="x: expected a strided tensor, got"):
                function(other)
        with pytest.raises(ValueError, match="x: expected an array with memory"):
            function(freed)
    with pytest.raises(ValueError, match="out: expected an array with memory"):
        clnorm.gelu(x, out=freed)
    with pytest.raises(ValueError, match="x: expected a tensor with memory, not one that a torch.func transform traces"):
        torch.vmap(clnorm.gelu)(x)


def test_a_parameter_is_an_output_where_no_gradient_is_recorded():
    x, out = torch.randn(4, 8), torch.nn.Parameter(torch.zeros(4, 8))
    for dim in (0, 1):
        with torch.no_grad():
            assert clnorm.softmax(x, dim, out=out) is out and torch.equal(out, clnorm.softmax(x, dim))
        with pytest.raises(ValueError, match="out: requires a gradient"):
            clnorm.softmax(x, dim, out=out)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_sizes_and_dimensions_are_integers_of_any_type(requires_grad):
    x = torch.randn(4, 8, requires_grad=requires_grad)
    assert torch.equal(ct.layer_norm(x, numpy.int64(8)), ct.layer_norm(x, 8))
    assert torch.equal(ct.softmax(x, numpy.int64(0)), ct.softmax(x, 0))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_wrong_normalized_shape_is_refused_by_name(requires_grad):
    x = torch.randn(4, 8, requires_grad=requires_grad)
    for wrong in (None, 8.0, torch.tensor(8), "8", range(8, 9)):
        with pytest.raises(ValueError, match="normalized_shape: expected an integer, or a tuple or list of integers, got"):
            ct.layer_norm(x, wrong)
    with pytest.raises(TypeError, match="normalized_shape: expected an integer, 0 or more, got 8.0"):
        ct.rms_norm(x, [8.0])


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_dropout_that_is_no_number_is_refused(requires_grad):
    x = torch.randn(4, 8, requires_grad=requires_grad)
    for wrong in (None, "", False):
        with pytest.raises(TypeError, match="dropout: expected a number, got"):
            ct.layer_norm(x, 8, dropout=wrong)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("wrong,expected", [
    ("7", "an integer, or .seed, offset., got '7'"),
    (1.5, "an integer, or .seed, offset., got 1.5"),
    (True, "an integer, or .seed, offset., got True"),
    ((1, 2, 3), "an integer, or .seed, offset., got .1, 2, 3."),
    (1 << 64, "an integer of 64 bits, got 18446744073709551616"),
    (torch.ones(1), "a tensor of one or two integers, got torch.float32 of shape .1,."),
    (torch.ones(1, dtype=torch.bool), "a tensor of one or two integers, got torch.bool of shape .1,."),
    (torch.ones(3, dtype=torch.int64), "a tensor of one or two integers, got torch.int64 of shape .3,."),
    (torch.ones(1, 1, dtype=torch.int64), "a tensor of one or two integers, got torch.int64 of shape .1, 1."),
])
def test_a_wrong_seed_is_refused_with_and_without_dropout(requires_grad, dropout, wrong, expected):
    for x in (torch.randn(4, 8, requires_grad=requires_grad), torch.empty(4, 8, device="meta")):
        with pytest.raises((TypeError, ValueError), match=f"^seed: expected {expected}$"):
            ct.rms_norm(x, 8, dropout=dropout, seed=wrong)


def test_a_seed_on_the_meta_device_belongs_to_an_x_there():
    seed = torch.empty(2, dtype=torch.int64, device="meta")
    assert ct.layer_norm(torch.empty(4, 8, device="meta"), 8, dropout=0.5, seed=seed).is_meta
    for dropout in (0.0, 0.5):
        with pytest.raises(ValueError, match="^seed: expected a tensor on cpu, as x is, got one on meta$"):
            ct.layer_norm(torch.randn(4, 8), 8, dropout=dropout, seed=seed)


@pytest.mark.parametrize("wrong", [True, numpy.True_, 1.0, 2, None])
def test_a_wrong_dimension_of_softmax_is_refused(wrong):
    with pytest.raises(IndexError, match=r"dim: expected a dimension of a tensor of shape \(4, 8\), got"):
        ct.softmax(torch.randn(4, 8), wrong)


@pytest.mark.parametrize("wrong", [3, "float32", numpy.float32, torch.int32])
def test_a_dtype_of_softmax_is_one_of_torch(wrong):
    with pytest.raises(ValueError, match="dtype: expected a torch.dtype of floating-point numbers, or None, got"):
        ct.softmax(torch.randn(4, 8), dtype=wrong)


@pytest.mark.parametrize("function", [
    clnorm.gelu,
    lambda x: ct.layer_norm(x, 16),
    lambda x: ct.layer_norm(x, 16, dropout=0.5, seed=(1, 2)),
    lambda x: ct.layer_norm(x, 16, dropout=0.5),
])
def test_results_ignore_the_default_device_of_torch(function):
    x = torch.randn(4, 16)
    torch.manual_seed(5)
    expected = function(x)
    torch.manual_seed(5)
    with torch.device("meta"):
        y = function(x)
    assert y.is_cpu and torch.equal(y, expected)


def test_a_write_to_a_tensor_that_autograd_has_saved_is_noticed():
    x = torch.randn(4, 16, requires_grad=True)
    saved = x.sigmoid()
    y = saved * saved
    before = saved._version
    with torch.no_grad():
        assert clnorm.rms_norm(saved, out=saved) is saved
    assert saved._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with torch.inference_mode():
        x = torch.ones(4, 16)
        assert clnorm.gelu(x, out=x) is x
    assert clnorm.gelu(x, out=x) is x


@pytest.mark.parametrize("message,call", [
    ("out: expected shape", lambda saved: clnorm.gelu(saved[:2], out=saved)),
    ("^eps is -1", lambda saved: clnorm.layer_norm(saved, eps=-1, out=saved)),
    ("out: expected memory that does not overlap x", lambda saved: clnorm.gelu(saved[1:], out=saved[:-1])),
    ("others: expected memory that does not overlap", lambda saved: clnorm.moments_merge(saved, saved)),
])
def test_a_refused_output_does_not_count_as_written(message, call):
    apart = torch.zeros(2, 4, 3)
    clnorm.gelu(apart[0, 1:], out=apart[1, :-1])  # a call that is kept has the layouts of the one that overlaps
    x = torch.randn(4, 3, requires_grad=True)
    saved = x.sigmoid()
    y = saved * saved
    before = saved._version
    with torch.no_grad(), pytest.raises(ValueError, match=message):
        call(saved)
    assert saved._version == before
    y.sum().backward()


def test_a_device_that_fails_may_have_written(monkeypatch):
    def fail(*_):
        raise clnorm.ClnormError("OpenCL error -5", "OPENCL_ERROR")

    out = torch.zeros(4, 16)
    monkeypatch.setattr(_call, "_run_on_host", fail)
    monkeypatch.setattr(_call, "_quick", {})
    with pytest.raises(clnorm.ClnormError):
        clnorm.gelu(torch.ones(4, 16), out=out)
    assert out._version == 1


def test_merged_moments_count_as_written():
    into, others = torch.ones(2, 4, 3)
    before = into._version
    clnorm.moments_merge(into, others)
    assert into._version == before + 1


@pytest.mark.parametrize("function", [
    lambda x, option: clnorm.quantize(x, scale=option).q.float(),
    lambda x, option: clnorm.layer_norm(x, eps=option),
    lambda x, option: clnorm.rms_norm(x, torch.ones(16), weight_offset=option),
    lambda x, option: clnorm.rms_norm(x, dropout=option, seed=1),
    lambda x, option: clnorm.l2_norm(x, eps=option),
    lambda x, option: clnorm.group_norm(x, 2, eps=option),
])
def test_an_option_that_is_a_tensor_is_read_in_each_call(function):
    x, option = torch.randn(4, 16), torch.tensor(0.125)
    first = function(x, option)
    assert torch.equal(first, function(x, 0.125))
    option.fill_(0.5)
    assert torch.equal(function(x, option), function(x, 0.5)) and not torch.equal(function(x, option), first)


def test_a_transposed_tensor():
    x = torch.randn(6, 24, 5).transpose(1, 2)
    torch.testing.assert_close(ct.layer_norm(x, 24), torch.nn.functional.layer_norm(x, (24,)), rtol=1e-5, atol=1e-5)
