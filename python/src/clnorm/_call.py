"""From arrays to one C call. Everything that a call needs besides addresses is a `Record`, which is made once for each
layout of its arrays and each set of options, and kept."""

from __future__ import annotations

import contextlib
import functools
import re
import struct
import threading

import clnorm._repeated_calls as _repeated_calls
from clnorm import _device, _dlpack
from clnorm._arrays import QUICK_TYPES, Dlpack
from clnorm._backends import backend_of_type
from clnorm._native import ffi, lib
from clnorm._record import Operation, fail, make_record

_MOST_RECORDS = 4096
_OVERLAP, _NO_MEMORY = lib.CLN_OVERLAP, lib.CLN_NO_MEMORY
_host_run = lib.cln_host_run  # torch.compile has to guard the globals that a call with tensors reads, and cannot guard lib
_records: dict = {}
_quick: dict = {}  # of _repeated_calls: records of calls without a copy of an input and without constants
_repeated_calls.start(int(ffi.cast("uintptr_t", ffi.addressof(lib, "cln_host_run"))))


def _backend(operation: Operation, inputs: tuple):
    """The backend that all inputs have; the first input is never absent."""
    kind: type = type(inputs[0])
    backend = backend_of_type(kind)
    if backend is None:
        fail(operation.arguments[0], "a NumPy array, torch tensor, pyopencl array or one with __dlpack__", kind)
    for array in inputs:
        other: type = type(array)
        if array is not None and other is not kind and backend_of_type(other) is not backend:
            name = next(name for name, same in zip(operation.arguments, inputs) if same is array)
            fail(name, f"{backend.kind}, as {operation.arguments[0]} is", other)
    return backend


def first(out) -> tuple:
    """The outs of a call whose caller may bring the first output."""
    return () if out is None else ((0, "out", out),)


def first_and_sums(out, wanted: list | tuple, sums: dict) -> tuple:
    """The outs of a backward. wanted: the names of its outputs. sums: the arrays that dweight and dbias are added to, where
    there are any."""
    for name in sums:
        if name not in wanted:
            fail(name, "None where no such gradient is computed")
        if name == wanted[0] and out is not None:
            fail("out", f"None, as {name} is where the first gradient goes")
    for name in wanted:
        if sums and name in ("dweight", "dbias") and name not in sums:
            fail(name, f"an array to add to, as {next(iter(sums))} is given")
    return first(out) + tuple([(wanted.index(name), name, array) for name, array in sums.items()])


def call(operation: Operation, inputs: tuple, options: tuple, outs: tuple = (), seed=(0, 0)) -> list:
    """Runs an operation. Returns its outputs in the description's order, and its constants.

    inputs: arrays or None, in the order of operation.arguments.  options: as the caller gave them; operation.read_options
    reads them where no earlier call had the same.  outs: (position, name, array) of the outputs that the caller brings.
    """
    return run(operation, inputs, options, outs, seed)[1]


def run(operation: Operation, inputs: tuple, options: tuple, outs: tuple = (), seed=(0, 0)) -> tuple:
    """As `call`; returns (the roles of the outputs, the arrays)."""
    if type(inputs[0]) in QUICK_TYPES:
        done = _repeated_calls.run(_quick, operation.function, options, inputs, outs, seed)
        if done is not None:
            return done
    backend = _backend(operation, inputs)
    if backend is Dlpack:
        return _run_dlpack(operation, inputs, options, outs, seed)
    if backend.on_queue and inputs[0].queue is None:
        fail(operation.arguments[0], "an array with a queue: array.with_queue(queue)")
    given_options = options
    if operation.read_options is not None:
        options = operation.read_options(inputs, options)
    layout = backend.layout
    layouts = tuple(
        [None if array is None else layout(name, array) for name, array in zip(operation.arguments, inputs)]
    )
    given = tuple([(place, name, _output_layout(backend, name, out)) for place, name, out in outs]) if outs else ()
    key = (operation.function, backend, layouts, options, given)
    try:
        record = _records.get(key)
    except TypeError:  # an option that cannot be part of a key, which the description refuses by name
        record = None
    if record is None:
        record = make_record(operation, backend, layouts, options, {place: rest for place, *rest in given})
        if len(_records) >= _MOST_RECORDS:
            _records.clear()
        _records[key] = record
    arrays = [backend.contiguous(inputs[i]) if copied else inputs[i] for i, copied in record.copied]
    brought = {place: out for place, _, out in outs} if outs else outs
    results = [
        brought[place] if place in brought else record.made[place](inputs[0], output.shape, output.dtype)
        for place, output in enumerate(record.outputs)
    ]
    try:
        (_run_on_queue if backend.on_queue else _run_on_host)(operation, record, arrays + results, seed)
    except _device.ClnormError:  # a device that failed may have written a part; a ValueError comes before any write
        _note_writes(backend, outs)
        raise
    _note_writes(backend, outs)
    if type(inputs[0]) in QUICK_TYPES:
        _keep_quick(operation, record, backend, inputs, given_options, outs)
    if record.constants:
        results += [backend.full(inputs[0], number) for number in record.constants]
    return record.roles, results


def _keep_quick(operation, record, backend, inputs, options, outs) -> None:
    """Keeps a call for _repeated_calls, where all of its tensors are the caller's arrays or new ones."""
    present = [(index, False) for index, array in enumerate(inputs) if array is not None]
    if record.constants or record.copied != tuple(present):
        return
    brought = {place: index for index, (place, _, _) in enumerate(outs)}
    made = tuple([
        brought[place] if place in brought else backend.maker(make, output.shape, output.dtype)
        for place, (make, output) in enumerate(zip(record.made, record.outputs))
    ])
    dtypes = [array.dtype for array in (*inputs, *[out for *_, out in outs]) if array is not None]
    failed = functools.partial(_raise, operation, record)
    if len(_quick) >= _MOST_RECORDS:
        _quick.clear()
    native = int(ffi.cast("uintptr_t", record.native))
    _repeated_calls.keep(_quick, operation.function, options, inputs, outs,
                         (native, made, record.roles, failed, record, dtypes))


def _run_dlpack(operation, inputs, options, outs, seed) -> tuple:
    for _, name, out in outs:  # a torch tensor has __dlpack__ too, but only its own backend tells autograd of the write
        _check_kind(Dlpack, name, out)
    arrays = tuple(None if a is None else _dlpack.read(name, a) for name, a in zip(operation.arguments, inputs))
    written = [(place, name, _dlpack.read(name, out, written=True)) for place, name, out in outs]
    roles, results = run(operation, arrays, options, tuple(written), seed)
    _dlpack.finish(results)
    brought = {place: out for place, _, out in outs}
    return roles, [brought[i] if i in brought else _dlpack.give(inputs[0], result) for i, result in enumerate(results)]


def _check_kind(backend, name, out) -> None:
    kind: type = type(out)
    if backend_of_type(kind) is not backend:
        fail(name, f"{backend.kind}, as the input is", kind)


def _output_layout(backend, name, out):
    _check_kind(backend, name, out)
    backend.check_output(name, out)
    return backend.layout(name, out)


def _note_writes(backend, outs) -> None:
    for *_, out in outs:
        backend.note_write(out)


def _run_on_host(operation, record, arrays, seed):
    status = _host_run(_device.selected_host(), record.native, record.addresses(arrays), *seed)
    if status:
        _raise(operation, record, status)


def _names(operation, record) -> list:
    """The argument of each tensor of a call."""
    names = [operation.arguments[i] for i, _ in record.copied]
    return names + [_OUTPUTS.get(output.role, output.role) for output in record.outputs]


def _raise(operation, record, status):
    """Raises the error of a status of cln_host_run."""
    names = _names(operation, record)
    if status >= _NO_MEMORY:
        fail(names[status - _NO_MEMORY], "an array with memory, got one whose memory was released")
    if status >= _OVERLAP:
        output, other = divmod(status - _OVERLAP, 32)
        unless = ", or is just that of an input of its size" if other < len(record.copied) else ""
        fail(names[output], f"memory that does not overlap {names[other]}{unless}")
    _device.check(status, _in_python)


_OUTPUTS = {"y": "out", "dx": "out", "q": "out"}  # the outputs that callers bring as `out`
_WORDS = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2", "cols": "columns", "x.scale_group": "x_scale_group", "rope_cos": "rope.cos",
    "rope_sin": "rope.sin", "s_given": "x_is_sum", "y_given": "x_is_y", "mean_given": "mean", "rope_repeat": "rope.repeat",
    "position": "rope.position",
    "CLNORM_SCALING_TENSOR": "'tensor'", "CLNORM_SCALING_ROW": "'row'", "CLNORM_SCALING_GROUP": "'group'",
    **{f"{output}.{word}": word for output in ("y", "q") for word in ("scaling", "scale_group", "scale")},
}


def _in_python(text: str) -> str:
    """An error of the C library with the names of Python's arguments and dtypes."""
    text = re.sub(r"^(\w+)\.mem\b", lambda word: f"the memory of {_OUTPUTS.get(word[1], word[1])}", text)
    text = re.sub(r"^gate(?= is set)", "z", text)  # C's gate is set by the presence of z
    text = re.sub(r"[\w.]*\w", lambda word: _WORDS.get(word[0], word[0]), text)
    return re.sub(r"^\w+(?=, from byte)", lambda word: _OUTPUTS.get(word[0], word[0]), text)


_contexts: dict = {}
_contexts_lock = threading.Lock()


def _queue_context(queue):
    """The clnorm_context of a pyopencl queue. It is kept, as it holds the cl_context, compiled programs and plans."""
    _device.start()
    context, device = queue.context.int_ptr, queue.device.int_ptr
    with _contexts_lock:
        if (context, device) not in _contexts:
            made = ffi.new("clnorm_context **")
            _device.check(
                lib.clnorm_context_create(
                    ffi.cast("cl_context", context), ffi.cast("cl_device_id", device), ffi.NULL, made
                )
            )
            _contexts[context, device] = made[0]
        return _contexts[context, device]


def _run_on_queue(operation, record, arrays, seed):
    import pyopencl

    queue = arrays[0].queue
    waited = list({event.int_ptr: event for array in arrays for event in array.events}.values())
    events = ffi.new("cl_event[]", [ffi.cast("cl_event", event.int_ptr) for event in waited]) if waited else ffi.NULL
    try:
        places = [number for array in arrays for number in (array.base_data.int_ptr if array.size else 0, array.offset)]
    except AttributeError:
        _check_buffers(operation, record, arrays)
        raise
    event = ffi.new("cl_event *")
    status = lib.cln_queue_run(
        _queue_context(queue), ffi.cast("cl_command_queue", queue.int_ptr), record.native,
        struct.pack(f"{len(places)}P", *places), *seed, len(waited), events, event,
    )
    if status:
        _check_buffers(operation, record, arrays)
    _device.check(status, _in_python)
    finished = pyopencl.Event.from_int_ptr(int(ffi.cast("uintptr_t", event[0])), retain=False)
    _replace_events(arrays, waited, finished)


def _check_buffers(operation, record, arrays) -> None:
    """An error that names the array in shared virtual memory, or of another context than the first array."""
    for name, array in zip(_names(operation, record), arrays):
        if array.size and not hasattr(array.base_data, "int_ptr"):
            fail(name, "an array in a cl_mem", type(array.base_data))
        if array.size and array.context != arrays[0].context:
            fail(name, f"an array of the context of {operation.arguments[0]}", array.context)


def _replace_events(arrays, waited, finished) -> None:
    """Replaces the events that a call waits for by the event of the call: pyopencl blocks where an array has more than 12.
    Events that another thread has added meanwhile stay."""
    for events in {id(array.events): array.events for array in arrays}.values():  # views of one array share a list
        for event in waited:
            with contextlib.suppress(ValueError):
                events.remove(event)
    for array in arrays:
        if finished not in array.events:
            array.add_event(finished)
