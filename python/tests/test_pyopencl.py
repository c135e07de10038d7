"""pyopencl arrays: on their queue, without a copy."""

import threading

import numpy
import pyopencl as cl
import pytest
import reference
from pyopencl import array as cl_array
from pyopencl.tools import SVMAllocator

import clnorm


@pytest.fixture
def queue():
    return cl.CommandQueue(cl.Context([cl.Device.from_int_ptr(clnorm.select().int_ptr)]))


def test_arrays_stay_on_their_queue(rng, queue):
    x = rng.standard_normal((8, 64)).astype("f4")
    on_device = cl_array.to_device(queue, x)
    y = clnorm.layer_norm(on_device)
    assert isinstance(y, cl_array.Array) and y.queue == queue and len(y.events) == 1
    reference.assert_close(y.get(), reference.norm(x), 64)
    out = cl_array.empty_like(on_device)
    assert clnorm.gelu(on_device, out=out) is out
    reference.assert_close(out.get(), reference.gelu(x))


def test_a_pipeline_waits_for_its_events(rng, queue):
    out_of_order = cl.CommandQueue(
        queue.context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    )
    x = rng.standard_normal((64, 512)).astype("f4")
    y = cl_array.to_device(out_of_order, x)
    for _ in range(4):
        y = clnorm.rms_norm(clnorm.softmax(y))
    expected = x
    for _ in range(4):
        expected = reference.norm(reference.softmax(expected), layer=False)
    assert numpy.abs(y.get() - expected).max() < 1e-3


def test_any_number_of_calls_is_in_flight(rng, queue):
    """Calls that share a weight do not block, while the first of them waits for a user event."""
    x, weight = (cl_array.to_device(queue, rng.standard_normal(shape).astype("f4")) for shape in ((8, 64), 64))
    expected = clnorm.rms_norm(x, weight).get()
    gate, results = cl.UserEvent(queue.context), []
    weight.add_event(gate)
    calls = threading.Thread(target=lambda: results.extend(clnorm.rms_norm(x, weight) for _ in range(40)), daemon=True)
    calls.start()
    calls.join(30)
    stuck = calls.is_alive()
    gate.set_status(cl.command_execution_status.COMPLETE)
    calls.join()
    assert not stuck and len(results) == 40 and len(weight.events) == 1
    for y in results:
        numpy.testing.assert_array_equal(y.get(), expected)


def test_views_have_offsets_and_strides(rng, queue):
    x = rng.standard_normal((8, 64)).astype("f4")
    on_device = cl_array.to_device(queue, x)
    reference.assert_close(clnorm.rms_norm(on_device[2:]).get(), reference.norm(x[2:], layer=False), 64)
    reference.assert_close(clnorm.rms_norm(on_device[:, 8:40]).get(), reference.norm(x[:, 8:40], layer=False), 32)
    with pytest.raises(ValueError, match="x: expected .* is not copied"):
        clnorm.rms_norm(on_device[:, ::2])


def test_a_given_scale_is_an_array_of_the_queue(rng, queue):
    x = rng.standard_normal((4, 32)).astype("f4")
    out = clnorm.quantize(cl_array.to_device(queue, x), scale=0.01)
    assert isinstance(out.scale, cl_array.Array)
    numpy.testing.assert_array_equal(clnorm.dequantize(*out).get(), clnorm.dequantize(*clnorm.quantize(x, scale=0.01)))


def test_an_array_without_a_queue_and_one_of_another_kind_are_refused(rng, queue):
    x = cl_array.to_device(queue, numpy.ones((2, 8), "f4"))
    with pytest.raises(ValueError, match="x: expected an array with a queue"):
        clnorm.gelu(x.with_queue(None), out=x)
    with pytest.raises(ValueError, match="x: expected an array with a queue"):
        clnorm.gelu(x.with_queue(None))
    with pytest.raises(ValueError, match="weight: expected a pyopencl array"):
        clnorm.layer_norm(x, numpy.ones(8, "f4"))
    other = cl_array.to_device(cl.CommandQueue(cl.Context(queue.context.devices)), numpy.ones(8, "f4"))
    with pytest.raises(ValueError, match="weight: expected an array of the context of x"):
        clnorm.layer_norm(x, other)


def test_memory_that_cannot_be_used_is_refused_by_its_argument(queue):
    flags = cl.mem_flags
    x = cl_array.to_device(queue, numpy.ones((2, 8), "f4"))
    constant, small = cl.Buffer(queue.context, flags.READ_ONLY, 64), cl.Buffer(queue.context, flags.READ_WRITE, 32)
    with pytest.raises(ValueError, match="^the memory of out has CL_MEM_READ_ONLY"):
        clnorm.gelu(x, out=cl_array.Array(queue, (2, 8), "f4", data=constant))
    with pytest.raises(ValueError, match="^the memory of x has 32 bytes"):
        clnorm.gelu(cl_array.Array(queue, (2, 8), "f4", data=small))


def test_shared_virtual_memory_is_refused(queue):
    try:
        allocator = SVMAllocator(queue.context, flags=cl.svm_mem_flags.READ_WRITE, queue=queue)
        x = cl_array.to_device(queue, numpy.ones((2, 8), "f4"), allocator=allocator)
    except (cl.Error, AttributeError) as error:
        pytest.skip(f"no shared virtual memory: {error}")
    with pytest.raises(ValueError, match="x: expected an array in a cl_mem, got .*SVMAllocation"):
        clnorm.gelu(x)


def test_rows_with_gaps_of_gelu_and_the_mask_of_dropout(rng, queue):
    x = rng.standard_normal((6, 64)).astype("f4")
    view, whole = cl_array.to_device(queue, x)[:, 3:43], cl_array.zeros(queue, (6, 64), "f4")
    clnorm.gelu(view, out=whole[:, 5:45])
    reference.assert_close(whole.get()[:, 5:45], reference.gelu(x[:, 3:43]))
    assert not whole.get()[:, :5].any() and not whole.get()[:, 45:].any()
    reference.assert_close(clnorm.gelu(view).get(), reference.gelu(x[:, 3:43]))
    options = {"dropout": 0.5, "seed": 3, "save_mask": True}
    mask = clnorm.rms_norm(cl_array.to_device(queue, x), **options).dropout_mask
    assert mask.dtype == bool and (mask.get() == clnorm.rms_norm(x, **options).dropout_mask).all()
