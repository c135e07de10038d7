"""From arrays to one C call. What a call needs besides addresses is worked out once for each layout of its arrays and each
set of options, and kept: a `_Record`."""

from __future__ import annotations

import math
import struct
import threading
from typing import Callable, NamedTuple

from clnorm import _device, _dlpack
from clnorm._arrays import DTYPES, SIZES, Dlpack, Tensor, backend_of_type
from clnorm._native import ffi, lib

MATRIX, COLUMNS, WEIGHTS, PLAIN = "matrix", "columns", "weights", "plain"
_MOST_RECORDS = 4096
_OVERLAP = lib.CLN_OVERLAP
_ONE_STRIDE = ("clnorm_group_norm", "clnorm_group_norm_backward", "clnorm_quantize", "clnorm_dequantize")
_OUTER = 3  # dimensions that rows have in all other functions


class Output(NamedTuple):
    """An output of a call: MATRIX [rows, cols], COLUMNS [cols], WEIGHTS [weight_rows, cols], or PLAIN, which the descriptor
    has no tensor for."""

    role: str
    shape: tuple
    dtype: str
    kind: str = MATRIX


class Description(NamedTuple):
    """What an operation computes. `lead`: how many dimensions of a MATRIX are rows; the others are columns."""

    rows: int
    cols: int
    lead: int
    kinds: dict  # of the inputs by role: MATRIX, COLUMNS, WEIGHTS or PLAIN; an input that is not here is not passed on
    outputs: tuple
    fields: dict  # of the descriptor; "y.scaling" is a member of a tensor
    seeded: bool = False


class Operation(NamedTuple):
    """A function of the C library. `arguments`: the Python names of its inputs; `roles`: their names in clnorm_args."""

    function: str
    desc: str
    arguments: tuple
    roles: tuple
    describe: Callable  # (tensors by role, options) -> Description


class _Record(NamedTuple):
    native: object  # cln_call *
    copied: tuple  # for each input that is passed on: (index, whether it has to be copied)
    outputs: tuple  # of Output
    addresses: object  # arrays -> their addresses; None where the device has buffers of its own
    kept: tuple  # what `native` points to


_records: dict = {}


def fail(argument: str, expected: str, got=None):
    """Raises the error of an argument that is not what it should be."""
    raise ValueError(f"{argument}: expected {expected}" + ("" if got is None else f", got {got}"))


def dims_of(tensor: Tensor, lead: int, most: int):
    """(size, stride) of the fewest dimensions that say how rows lie, the slowest first, at most so many; None where the
    tensor has to be copied. Its first `lead` dimensions are rows."""
    if 0 in tensor.shape:
        return ()
    if tensor.swapped:
        return None
    cols = 1
    for size, stride in zip(reversed(tensor.shape[lead:]), reversed(tensor.strides[lead:])):
        if size != 1 and stride != cols:
            return None
        cols *= size
    dims: list = []
    for size, stride in zip(reversed(tensor.shape[:lead]), reversed(tensor.strides[:lead])):
        if dims and size != 1 and stride == math.prod(dims[0]):
            dims[0] = (dims[0][0] * size, dims[0][1])
        elif size != 1:
            dims.insert(0, (size, stride))
    if len(dims) > most or any(stride < (cols if most == 1 else 0) for _, stride in dims):
        return None
    return tuple(dims)


def _backend(operation: Operation, inputs: tuple):
    """The one backend of the inputs; the first is never absent."""
    kind = type(inputs[0])
    backend = backend_of_type(kind)
    if backend is None:
        fail(operation.arguments[0], "a NumPy array, torch tensor, pyopencl array or one with __dlpack__", kind)
    for array in inputs:
        if array is not None and type(array) is not kind and backend_of_type(type(array)) is not backend:
            name = next(name for name, other in zip(operation.arguments, inputs) if other is array)
            fail(name, f"{backend.kind}, as {operation.arguments[0]} is", type(array))
    return backend


def call(operation: Operation, inputs: tuple, options: tuple, out=None, seed=(0, 0), backend=None) -> list:
    """Runs an operation. inputs: arrays or None, as operation.arguments. Returns its outputs in the description's order;
    the first is `out` where that is given."""
    backend = backend or _backend(operation, inputs)
    if backend is Dlpack:
        return _call_dlpack(operation, inputs, options, out, seed)
    layout = backend.layout
    layouts = tuple(
        [None if array is None else layout(name, array) for name, array in zip(operation.arguments, inputs)]
    )
    key = (operation.function, backend, layouts, options, None if out is None else _output_layout(backend, out))
    try:
        record = _records.get(key)
    except TypeError:
        raise TypeError(f"expected numbers and words as options, got {_unhashable(options)!r}") from None
    if record is None:
        record = _remember(key, _make_record(operation, backend, layouts, options, key[-1], out))
    arrays = [backend.contiguous(inputs[i]) if copied else inputs[i] for i, copied in record.copied]
    results = [backend.empty(inputs[0], output.shape, output.dtype) for output in record.outputs[out is not None:]]
    if out is not None:
        results.insert(0, out)
    (_run_on_queue if backend.on_queue else _run_on_host)(operation, backend, record, arrays + results, seed)
    return results


def _unhashable(option):
    """The first option that cannot be part of a key; None where there is none."""
    if isinstance(option, tuple):
        return next((found for found in map(_unhashable, option) if found is not None), None)
    return option if type(option).__hash__ is None else None


def _call_dlpack(operation, inputs, options, out, seed) -> list:
    arrays = tuple(None if a is None else _dlpack.read(name, a) for name, a in zip(operation.arguments, inputs))
    written = None if out is None else _dlpack.read("out", out, written=True)
    results = call(operation, arrays, options, written, seed)
    _dlpack.finish(results)
    return [out if result is written else _dlpack.give(inputs[0], result) for result in results]


def _output_layout(backend, out):
    if backend_of_type(type(out)) is not backend:
        fail("out", f"{backend.kind}, as the input is", type(out))
    backend.check_output("out", out)
    return backend.layout("out", out)


def _remember(key, record):
    if len(_records) >= _MOST_RECORDS:
        _records.clear()
    _records[key] = record
    return record


def _run_on_host(operation, backend, record, arrays, seed):
    status = lib.cln_host_run(_device.selected_host(), record.native, record.addresses(arrays), *seed)
    if status >= _OVERLAP:
        output, other = divmod(status - _OVERLAP, 32)
        names = _names(operation, record)
        fail(names[output], f"memory that does not overlap {names[other]}, or is just that of an input of its size")
    _device.check(status)


def _names(operation, record) -> list:
    """What the tensors of a record are called, in its order."""
    return [operation.arguments[i] for i, _ in record.copied] + [output.role for output in record.outputs]


_contexts: dict = {}
_contexts_lock = threading.Lock()


def _queue_context(queue):
    """The clnorm_context of a pyopencl queue. It is kept: it holds the cl_context, compiled programs and plans."""
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


def _run_on_queue(operation, backend, record, arrays, seed):
    import pyopencl

    queue = arrays[0].queue
    if queue is None:
        fail(operation.arguments[0], "an array with a queue: array.with_queue(queue)")
    waited = [event for array in arrays for event in array.events]
    events = ffi.new("cl_event[]", [ffi.cast("cl_event", event.int_ptr) for event in waited]) if waited else ffi.NULL
    places = [number for array in arrays for number in (array.base_data.int_ptr if array.size else 0, array.offset)]
    event = ffi.new("cl_event *")
    _device.check(
        lib.cln_queue_run(
            _queue_context(queue), ffi.cast("cl_command_queue", queue.int_ptr), record.native,
            struct.pack(f"{len(places)}P", *places), *seed, len(waited), events, event,
        )
    )
    finished = pyopencl.Event.from_int_ptr(int(ffi.cast("uintptr_t", event[0])), retain=False)
    for array in arrays:
        array.add_event(finished)


def _make_record(operation, backend, layouts, options, out_layout, out) -> _Record:
    tensors = {
        role: backend.tensor(layout) for role, layout in zip(operation.roles, layouts) if layout is not None
    }
    for name, role in zip(operation.arguments, operation.roles):
        if role in tensors and role != "position" and tensors[role].dtype not in DTYPES:
            fail(name, f"a dtype of {', '.join(DTYPES)}", tensors[role].dtype)
    description = operation.describe(tensors, options)
    desc = ffi.new(f"{operation.desc} *")
    getattr(lib, f"{operation.desc}_init")(desc)
    desc.rows, desc.cols = description.rows, description.cols
    for name, value in description.fields.items():
        _set_field(desc, name, value)
    native = ffi.new("cln_call *")
    native.operation = ffi.cast("void *", ffi.addressof(lib, operation.function))
    native.desc = desc
    native.seeded = description.seeded
    most = 1 if operation.function in _ONE_STRIDE else _OUTER
    copied, passed = [], []
    for index, role in enumerate(operation.roles):
        if role in tensors and role in description.kinds:
            copy = _add(native, desc, description, role, description.kinds[role], tensors[role], most)
            copied.append((index, copy))
            passed.append(_contiguous(*tensors[role][::2]) if copy else tensors[role])
    for position, output in enumerate(description.outputs):
        tensor = _contiguous(output.shape, output.dtype)
        if position == 0 and out_layout is not None:
            tensor = _given_output(backend.tensor(out_layout), output, *_rows_of(output.kind, description, most))
        _add(native, desc, description, output.role, output.kind, tensor, most, written=True)
        passed.append(tensor)
    dense = [tensor if tensor == _contiguous(tensor.shape, tensor.dtype) else None for tensor in passed]
    addresses = None if backend.on_queue else backend.addresses_of(dense)
    return _Record(native, tuple(copied), description.outputs, addresses, (desc,))


def _set_field(desc, name, value):
    *members, field = name.split(".")
    for member in members:
        desc = getattr(desc, member)
    try:
        setattr(desc, field, value)
    except (TypeError, OverflowError):
        kind = "a number" if isinstance(getattr(desc, field), float) else "an integer, 0 or more"
        raise TypeError(f"{field}: expected {kind}, got {value!r}") from None


def _contiguous(shape, dtype) -> Tensor:
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * max(shape[i], 1)
    return Tensor(tuple(shape), tuple(strides), dtype)


def _apart(dims: tuple, cols: int) -> bool:
    """Whether rows do not overlap: each stride is at least what the smaller ones take up."""
    for size, stride in sorted(dims, key=lambda dim: dim[1]):
        if stride < cols:
            return False
        cols += (size - 1) * stride
    return True


def _rows_of(kind: str, description: Description, most: int) -> tuple:
    """How many dimensions of a tensor are rows, and how many strides these may have."""
    return (description.lead, most) if kind == MATRIX else (int(kind == WEIGHTS), 1)


def _given_output(tensor: Tensor, output: Output, lead: int, most: int) -> Tensor:
    if tensor.shape != tuple(output.shape) or tensor.dtype != output.dtype:
        fail("out", f"shape {tuple(output.shape)} and dtype {output.dtype}", f"{tensor.shape} and {tensor.dtype}")
    dims = dims_of(tensor, lead, most)
    if dims is None or not _apart(dims, math.prod(tensor.shape[lead:])):
        expected = "rows that lie one after the other, or at a fixed distance"
        if most > 1:
            expected = (
                f"the normalised dimensions innermost and dense, and rows apart, with at most {most} strides; "
                "write to a contiguous array and assign it"
            )
        fail("out", expected, f"strides {tensor.strides}")
    return tensor


def _add(native, desc, description, role, kind, tensor: Tensor, most: int, written: bool = False) -> bool:
    """Puts a tensor into a call. Returns whether its array has to be copied before."""
    size = SIZES[tensor.dtype]
    lead, most = _rows_of(kind, description, most)
    dims = dims_of(tensor, lead, most)
    copy = dims is None
    if copy:
        dims = dims_of(_contiguous(tensor.shape, tensor.dtype), lead, most)
    cols = math.prod(tensor.shape[lead:])
    if kind in (MATRIX, WEIGHTS):
        _set_rows(getattr(desc, role), dims, cols)
    if kind != PLAIN:
        getattr(desc, role).dtype = DTYPES[tensor.dtype]
    place = native.tensors[native.count]
    native.count += 1
    place.place = ffi.offsetof("clnorm_args", role)
    place.bytes = (sum((count - 1) * stride for count, stride in dims) + cols) * size if 0 not in tensor.shape else 0
    place.width, place.stride = (number * size for number in _one_stride(dims, cols))
    place.read, place.written = not written, written
    return copy


def _set_rows(of_tensor, dims: tuple, cols: int) -> None:
    if len(dims) > 1 or (dims and dims[0][1] < cols):
        for dim, (size, stride) in zip(of_tensor.outer, dims):
            dim.size, dim.stride = size, stride
    else:
        of_tensor.stride = dims[0][1] if dims else cols


def _one_stride(dims: tuple, width: int) -> tuple:
    """(width, stride) of rows, where dimensions without gaps count as one row; a width of 0: they have more strides."""
    rest = list(dims)
    while rest and rest[-1][1] == width:
        width *= rest.pop()[0]
    if len(rest) > 1 or (rest and rest[0][1] < width):
        return 0, 0
    return width, rest[0][1] if rest else width
