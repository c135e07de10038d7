"""Memory of large results that is reused."""

import gc
import os
import subprocess
import sys
from concurrent import futures

import numpy
import pytest
import reference
import torch

import clnorm
from clnorm import _kept_memory

ROWS, COLUMNS = 1024, 8192 + 16  # a little more than 32 MiB in float32


@pytest.fixture
def x(rng):
    _kept_memory._free.clear()
    yield rng.standard_normal((ROWS, COLUMNS)).astype("f4")
    _kept_memory._free.clear()


def address_of(array):
    return array.data_ptr() if isinstance(array, torch.Tensor) else array.ctypes.data


def kept():
    """Addresses of the blocks that are free."""
    return [address for _, address in _kept_memory._free]


@pytest.mark.parametrize("of", [numpy.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_memory_is_not_reused_while_a_view_refers_to_it(x, of):
    x = of(x)
    y = clnorm.layer_norm(x)
    address, expected = address_of(y), y[:, ::97].copy() if of is numpy.asarray else y[:, ::97].clone()
    reference.assert_close(numpy.asarray(y[:3]), reference.norm(x[:3]), COLUMNS)
    view = y.reshape(-1)[COLUMNS:].reshape(ROWS - 1, COLUMNS)[:, ::97]
    del y
    other = clnorm.layer_norm(x * 2 + 1)
    assert address_of(other) != address and (view == expected[1:]).all()
    del view
    assert address in kept()
    again = clnorm.rms_norm(x)
    assert address_of(again) == address and address_of(other) != address
    reference.assert_close(numpy.asarray(again[-3:]), reference.norm(x[-3:], layer=False), COLUMNS)


def test_large_tensors_are_no_views(x):
    x = torch.from_numpy(x).to(torch.bfloat16).repeat(2, 1)
    y = clnorm.gelu(x)
    assert y.dtype == torch.bfloat16 and y.is_contiguous() and not y._is_view() and y.shape == x.shape
    torch.testing.assert_close(y, torch.nn.functional.gelu(x), rtol=2e-2, atol=2e-2)


def test_small_results_are_not_kept(x):
    clnorm.layer_norm(x[:-8])
    assert not _kept_memory._free


def test_kept_memory_is_limited(x, monkeypatch):
    monkeypatch.setattr(_kept_memory, "_MOST", 80 << 20)
    first, *others = [clnorm.rms_norm(x) for _ in range(4)]
    oldest = address_of(first)
    del first, others
    assert len(_kept_memory._free) == 2 and oldest not in kept()
    monkeypatch.setattr(_kept_memory, "_MOST", 0)
    clnorm.rms_norm(x)
    assert not _kept_memory._free


def test_threads_do_not_share_memory(x):
    def is_right(factor):
        y = clnorm.l2_norm(x * factor, eps=1.0)
        length = numpy.sqrt((numpy.asarray(x[::200], "f8") ** 2).sum(-1, keepdims=True) * factor**2 + 1)
        return numpy.abs(y[::200] - x[::200] * factor / length).max() <= 1e-5

    factors = [numpy.float32(factor) for factor in (0.001, 0.01, 0.1)]
    with futures.ThreadPoolExecutor(len(factors)) as pool:
        assert list(pool.map(lambda factor: all(is_right(factor) for _ in range(6)), factors)) == [True] * len(factors)


def test_the_collector_may_run_at_any_time(x):
    sizes = [_kept_memory.LARGE + (number << 21) for number in range(3)]
    thresholds = gc.get_threshold()
    try:
        for threshold in range(1, 40):
            gc.collect()
            gc.disable()
            results = [_kept_memory.take(size) for size in sizes]
            cycle: list = [results.pop()]
            cycle.append(cycle)
            del results, cycle
            tuples = [(threshold, number) for number in range(100)]  # uses up the tuples that Python keeps for reuse
            gc.set_threshold(gc.get_count()[0] + threshold)
            gc.enable()
            _kept_memory.take(_kept_memory.LARGE)
            del tuples
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()


def test_a_smaller_block_at_the_address_of_a_larger_one_is_not_reused_for_it(x, monkeypatch):
    class Evicted(dict):
        def pop(self, key, default=None):
            block = super().pop(key, default)
            if block is not None:
                _kept_memory._keep(block[:_kept_memory.LARGE])
            return super().pop(key, default)

    monkeypatch.setattr(_kept_memory, "_free", Evicted())
    address = _kept_memory.take(2 * _kept_memory.LARGE).ctypes.data
    assert kept() == [address]
    assert _kept_memory.take(2 * _kept_memory.LARGE).ctypes.data != address


@pytest.mark.parametrize("keep", ["", "del y"])
def test_the_interpreter_exits(keep):
    code = f"""
import clnorm, numpy, torch
y = [clnorm.rms_norm(x) for x in (numpy.ones(({ROWS}, {COLUMNS}), "f4"), torch.ones({ROWS}, {COLUMNS}))]
{keep}
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")


def amount(text):
    """A process with this CLNORM_KEPT_MIB, which prints the limit in bytes."""
    program = "from clnorm import _kept_memory; print(_kept_memory._MOST)"
    environment = {**os.environ, "CLNORM_KEPT_MIB": text}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("text", ["much", "-5"])
def test_a_wrong_limit_names_the_variable(text):
    assert f"CLNORM_KEPT_MIB is '{text}': expected a number of MiB, 0 or more" in amount(text).stderr


@pytest.mark.parametrize("text,mib", [("", 256), ("0", 0), ("17", 17)])
def test_the_variable_sets_the_limit(text, mib):
    assert amount(text).stdout == f"{mib << 20}\n"
