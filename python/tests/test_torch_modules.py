"""Modules of clnorm.torch: replacement, state, compilation, autocast, memory formats."""

import copy
import inspect
import pickle

import pytest
import torch

import clnorm.torch as ct


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(32), torch.nn.RMSNorm(32, eps=1e-6)
        self.linear, self.fused = torch.nn.Linear(32, 32), ct.FusedAddRMSNorm(32)

    def forward(self, x):
        y, residual = self.fused(self.linear(self.first(x)), x)
        return self.second(y) + residual


def test_replaced_modules_compile_copy_pickle_and_load():
    torch.manual_seed(3)
    eager, x = Block(), torch.randn(4, 7, 32)
    ours = copy.deepcopy(eager)
    optimised = list(ours.parameters())
    assert ct.replace(ours) == ["first: LayerNorm", "second: RMSNorm"] and ct.replace(ours) == []
    assert all(a is b for a, b in zip(optimised, ours.parameters()))
    torch.testing.assert_close(ours(x), eager(x), rtol=1e-5, atol=1e-5)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    compiled(x).square().mean().backward()
    eager(x).square().mean().backward()
    for a, b in zip(ours.parameters(), eager.parameters()):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(other.first) is ct.LayerNorm
        torch.testing.assert_close(other(x), ours(x), rtol=0, atol=0)
    eager.load_state_dict(ours.state_dict())


class Picture(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.group, self.instance = torch.nn.GroupNorm(2, 6), torch.nn.InstanceNorm2d(6, affine=True)
        self.norm, self.fused = Block(), ct.FusedAddLayerNorm(32)

    def forward(self, x):
        y, residual = self.fused(self.norm(self.instance(self.group(x))), x)
        return ct.l2_norm(ct.gelu(ct.instance_norm(y))) + ct.softmax(residual, 1)


@pytest.mark.parametrize("shape", [(2, 6, 3, 32), (6, 6, 32)])
def test_replaced_modules_are_traced(shape):
    """By torch.fx.symbolic_trace, which does not know the dimensions: InstanceNorm2d takes an x without samples too."""
    model, x = Picture(), torch.randn(shape)
    model.instance.bias.data.uniform_()
    ct.replace(model)
    if x.dim() == 3:
        model = torch.nn.Sequential(model.instance, model.norm)
    graph = torch.fx.symbolic_trace(model)
    for traced in (graph, pickle.loads(pickle.dumps(graph)), torch.fx.symbolic_trace(graph)):
        torch.testing.assert_close(traced(x), model(x), rtol=0, atol=0)


@pytest.mark.parametrize("kind", [ct.FusedAddLayerNorm, ct.FusedAddRMSNorm])
def test_the_dropout_of_modules_is_checked(kind):
    for dropout in (-0.1, 1, float("nan")):
        with pytest.raises(ValueError, match=f"dropout: expected 0 or more, and less than 1, got {dropout}"):
            kind(8, dropout=dropout)
    with pytest.raises(TypeError, match="dropout: expected a number, got 'high'"):
        kind(8, dropout="high")


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_replaced_modules_differ_where_their_docs_say():
    group_norm, x = torch.nn.GroupNorm(4, 4), torch.ones(1, 4)
    with pytest.raises(ValueError, match="more than 1 value"):
        group_norm(x)
    ct.replace(group_norm)
    assert torch.equal(group_norm(x), torch.zeros(1, 4))
    with pytest.raises(ValueError, match="x: expected at least one column"):
        ct.LayerNorm(0)(torch.ones(2, 0))
    with pytest.raises(RuntimeError, match="vmap over dims of size 0"):
        torch.vmap(ct.LayerNorm(8))(torch.ones(0, 8))


@pytest.mark.parametrize("module", [ct.FusedAddLayerNorm(64, dropout=0.25), ct.FusedAddRMSNorm(64, dropout=0.25)])
def test_dropout_of_modules_follows_the_generator(module):
    x, residual = torch.ones(32, 64), torch.zeros(32, 64)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for function in (module.train(), compiled):
        torch.manual_seed(4)
        first, second = function(x, residual)[1], function(x, residual)[1]
        assert set(first.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()} and not torch.equal(first, second)
        torch.manual_seed(4)
        assert torch.equal(function(x, residual)[1], first)
    x.requires_grad_()
    module(x, residual)[1].sum().backward()
    assert set(x.grad.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    y, total = copy.deepcopy(module).eval()(x, residual)
    assert torch.equal(total, x) and "dropout=0.25" in repr(module) and set(module.state_dict()) <= {"weight", "bias"}


def test_signatures_of_modules_with_a_residual():
    for module, theirs in ((ct.FusedAddLayerNorm, torch.nn.LayerNorm), (ct.FusedAddRMSNorm, torch.nn.RMSNorm)):
        names = list(inspect.signature(module).parameters)
        assert names == [*inspect.signature(theirs).parameters, "dropout"]
        plain = repr(theirs(8, 1e-3)).replace(theirs.__name__, module.__name__)
        assert repr(module(8, 1e-3, dropout=0.5)) == plain[:-1] + ", dropout=0.5)"


def test_only_a_module_is_replaced():
    with pytest.raises(TypeError, match="model: expected a torch.nn.Module, got list"):
        ct.replace([torch.nn.LayerNorm(8)])


def test_instance_norms():
    for kind, shape in ((torch.nn.InstanceNorm1d, (3, 4, 9)), (torch.nn.InstanceNorm2d, (3, 4, 5, 2)),
                        (torch.nn.InstanceNorm3d, (3, 4, 2, 2, 3))):
        x, norm, tracking = torch.randn(shape), kind(4, affine=True), kind(4, track_running_stats=True)
        expected = norm(x), norm(x[0])
        assert ct.replace(norm) == [f"model: {kind.__name__}"] and ct.replace(tracking) == []
        for got, wanted in zip((norm(x), norm(x[0])), expected):
            torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


def test_autocast():
    block, x = Block(), torch.randn(4, 32)
    ct.replace(block)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = block.second(block.linear(block.first(x)))
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert block.first.weight.grad.dtype == torch.float32


def test_channels_last_stays_channels_last():
    x = torch.randn(2, 6, 5, 4).to(memory_format=torch.channels_last)
    norm = torch.nn.GroupNorm(3, 6)
    expected = norm(x)
    assert ct.replace(norm) == ["model: GroupNorm"]
    y = norm(x)
    assert y.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
