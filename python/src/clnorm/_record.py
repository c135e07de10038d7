"""Descriptors: from the layouts of a call's arrays and its options to a `Record`, which has everything that a call needs
besides addresses."""

from __future__ import annotations

import math
from typing import Callable, NamedTuple, NoReturn

from clnorm._arrays import DTYPES, FLOATS_OF_8_BITS, SIZES, Tensor, dense
from clnorm._kept_memory import LARGE
from clnorm._native import ffi, lib

MATRIX, COLUMNS, WEIGHTS, TRANSPOSED, PLAIN = "matrix", "columns", "weights", "transposed", "plain"
_ONE_STRIDE = ("clnorm_group_norm", "clnorm_group_norm_backward", "clnorm_quantize", "clnorm_dequantize")
_MIXED = ("clnorm_norm_forward", "clnorm_norm_backward")  # they convert _CONVERTED between float64 and other dtypes
_CONVERTED = ("weight", "bias", "dweight", "dbias")
_LEAST_COLUMNS = 8  # of rows that are read with gaps, where any shape will do: fewer take longer than a copy of the rows
_OUTER = 3  # the strides that rows may have in functions other than _ONE_STRIDE
_DTYPES_OF_THEIR_OWN = ("scale", "x_scale", "position", "row_scale", "mean", "rstd", "moments", "sums")


class Output(NamedTuple):
    """An output of a call. kind: MATRIX [rows, cols], COLUMNS [cols], WEIGHTS [weight_rows, cols], TRANSPOSED [cols, rows],
    or PLAIN, for which the descriptor has no tensor. read: the result is added to the caller's array, in its dtype."""

    role: str
    shape: tuple
    dtype: str
    kind: str = MATRIX
    read: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * SIZES[self.dtype]


class Description(NamedTuple):
    """The problem of a call. `lead`: the number of leading dimensions of a MATRIX that are rows; the others are columns."""

    rows: int
    cols: int
    lead: int
    kinds: dict  # of the inputs by role: MATRIX, COLUMNS, WEIGHTS or PLAIN; an input that is not here is not passed on
    outputs: tuple
    fields: dict  # of the descriptor; "y.scaling" is a member of a tensor
    seeded: bool = False
    constants: tuple = ()  # results that are known, arrays of one float32 each; they follow the outputs
    any_shape: bool = False  # an operation on elements: tensors without gaps are passed as one row


class Operation(NamedTuple):
    """A function of the C library. `arguments`: the Python names of its inputs; `roles`: their names in clnorm_args;
    `codes`: the roles that may have 8 bits."""

    function: str
    desc: str
    arguments: tuple
    roles: tuple
    describe: Callable  # (tensors by role, options) -> Description
    codes: tuple = ()
    read_options: Callable | None = None  # (inputs, the caller's options) -> options of immutable types


class Record(NamedTuple):
    native: object  # cln_call *
    copied: tuple  # for each input that is passed on: (index, whether it is copied)
    outputs: tuple  # of Output
    made: tuple  # the function that makes the array of each output: backend.empty, large or zeros
    roles: tuple  # of the outputs
    constants: tuple  # as in the Description
    addresses: object  # arrays -> their addresses; None where the device has buffers of its own
    kept: tuple  # objects that `native` points to


def fail(argument: str, expected: str, got=None) -> NoReturn:
    """Raises the error of an argument."""
    raise ValueError(f"{argument}: expected {expected}" + ("" if got is None else f", got {got}"))


def dims_of(tensor: Tensor, lead: int, most: int):
    """(size, stride) of the rows' dimensions, the slowest first, where neighbouring ones are merged. The first `lead`
    dimensions of the tensor are rows. None where the tensor has to be copied: its columns are not dense, its rows need more
    than `most` strides or a negative one, or its byte order is not the machine's."""
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


def _main(tensors: dict) -> str:
    """The role of the tensor that decides whether the arithmetic is in float64."""
    return next(role for role in ("x", "y", "q") if role in tensors)


def _beside(operation: Operation, role: str, double: bool) -> list:
    """The dtypes that a tensor can have beside the main one, which is of float64 if `double`. All are float64 or none is,
    except weights and their gradients where the library converts these."""
    if operation.function in _MIXED and role in _CONVERTED:
        return ["float32", "float64"] if double else ["float32", "float16", "bfloat16", "float64"]
    return ["float64"] if double else ["float32", "float16", "bfloat16"]


def _check_dtypes(operation: Operation, tensors: dict) -> None:
    """Checks the dtype of each input by itself and beside the main one; descriptions check _DTYPES_OF_THEIR_OWN."""
    main = _main(tensors)
    double = tensors[main].dtype == "float64"
    for name, role in zip(operation.arguments, operation.roles):
        if role not in tensors or role in _DTYPES_OF_THEIR_OWN:
            continue
        dtype = tensors[role].dtype
        possible = [word for word in DTYPES if role in operation.codes or word not in FLOATS_OF_8_BITS]
        if dtype not in possible:
            fail(name, f"a dtype of {', '.join(possible)}", dtype)
        beside = _beside(operation, role, double)
        if role != main and dtype not in beside:
            fail(name, f"a dtype of {', '.join(beside)}, as {main} has {tensors[main].dtype}", dtype)


def make_record(operation: Operation, backend, layouts: tuple, options: tuple, given: dict) -> Record:
    """given: by position, (name, layout) of the outputs that the caller has brought."""
    tensors = {
        role: backend.tensor(layout) for role, layout in zip(operation.roles, layouts) if layout is not None
    }
    _check_dtypes(operation, tensors)
    brought = {position: backend.tensor(layout) for position, (_, layout) in given.items()}
    description = operation.describe(tensors, options)
    copied_first = backend.copies and description.cols < _LEAST_COLUMNS
    if description.any_shape and _fit_one_row(brought) and (copied_first or _fit_one_row(tensors)):
        description = description._replace(rows=1, cols=description.rows * description.cols, lead=0)
    desc = _descriptor(operation, description)
    native = ffi.new("cln_call *")
    native.operation = ffi.cast("void *", ffi.addressof(lib, operation.function))
    native.desc = desc
    native.seeded = description.seeded
    most = 1 if operation.function in _ONE_STRIDE else _OUTER
    copied, passed = [], []
    for index, role in enumerate(operation.roles):
        if role in tensors and role in description.kinds:
            tensor = tensors[role]
            part = Output(role, tensor.shape, tensor.dtype, description.kinds[role], True)
            copy = _add(native, desc, description, part, tensor, most)
            if copy and not backend.copies:
                fail(operation.arguments[index], "the normalised dimensions innermost and dense, as "
                     f"{backend.kind} is not copied: copy it first", f"strides {tensor.strides}")
            copied.append((index, copy))
            passed.append(dense(tensor.shape, tensor.dtype) if copy else tensor)
    double = tensors[_main(tensors)].dtype == "float64"
    for position, output in enumerate(description.outputs):
        tensor = dense(output.shape, output.dtype)
        if position in given:
            dtypes = _beside(operation, output.role, double) if output.read else [output.dtype]
            rows = _rows_of(output.kind, description, most)
            tensor = _given_output(given[position][0], brought[position], output.shape, dtypes, *rows)
        _add(native, desc, description, output, tensor, most, written=True)
        passed.append(tensor)
    without_gaps = [tensor if tensor == dense(tensor.shape, tensor.dtype) else None for tensor in passed]
    addresses = None if backend.on_queue else backend.addresses_of(without_gaps)
    roles = tuple([output.role for output in description.outputs])
    made = tuple([_maker(backend, output, description.rows) for output in description.outputs])
    return Record(native, tuple(copied), description.outputs, made, roles, description.constants, addresses, (desc,))


def _maker(backend, output: Output, rows: int):
    """The function that makes an output's array. Without rows the library writes no scale, largest |x| or fault."""
    if rows == 0 and output.kind == PLAIN:
        return backend.zeros
    return backend.large if output.size >= LARGE else backend.empty


def _fit_one_row(tensors: dict) -> bool:
    """Whether no tensor has gaps."""
    return all(dims_of(tensor, 0, 1) is not None for tensor in tensors.values())


def _descriptor(operation: Operation, description: Description):
    desc = ffi.new(f"{operation.desc} *")
    getattr(lib, f"{operation.desc}_init")(desc)
    desc.rows, desc.cols = description.rows, description.cols
    for name, value in description.fields.items():
        _set_field(desc, name, value)
    return desc


def _set_field(desc, name, value):
    *members, field = name.split(".")
    for member in members:
        desc = getattr(desc, member)
    try:
        setattr(desc, field, value)
    except (TypeError, OverflowError) as error:
        if isinstance(error, OverflowError) and value > 0:
            fail(field, "a smaller integer", value)
        kind = "a number" if isinstance(getattr(desc, field), float) else "an integer, 0 or more"
        raise TypeError(f"{field}: expected {kind}, got {value!r}") from None


def _apart(dims: tuple, cols: int) -> bool:
    """Whether rows do not overlap: each stride is at least the extent of the dimensions with smaller strides."""
    for size, stride in sorted(dims, key=lambda dim: dim[1]):
        if stride < cols:
            return False
        cols += (size - 1) * stride
    return True


def _rows_of(kind: str, description: Description, most: int) -> tuple:
    """(leading dimensions of a tensor that are rows, strides that these may have)."""
    return (description.lead, most) if kind == MATRIX else (int(kind == WEIGHTS), 1)


def _given_output(name: str, tensor: Tensor, shape: tuple, dtypes: list, lead: int, most: int) -> Tensor:
    if tensor.shape != tuple(shape) or tensor.dtype not in dtypes:
        expected = f"shape {tuple(shape)} and dtype {' or '.join(dtypes)}"
        fail(name, expected, f"{tensor.shape} and {tensor.dtype}")
    dims = dims_of(tensor, lead, most)
    if dims is None or not _apart(dims, math.prod(tensor.shape[lead:])):
        expected = "rows that lie one after the other, or at a fixed distance"
        if most > 1:
            expected = (
                f"the normalised dimensions innermost and dense, and rows apart, with at most {most} strides; "
                "write to a contiguous array and assign it"
            )
        fail(name, expected, f"strides {tensor.strides}")
    return tensor


def _add(native, desc, description, part: Output, tensor: Tensor, most: int, written: bool = False) -> bool:
    """Adds a tensor to a call. part: its role and kind. Returns whether its array has to be copied first."""
    size = SIZES[tensor.dtype]
    lead, most = _rows_of(part.kind, description, most)
    dims = dims_of(tensor, lead, most)
    copy = dims is None
    if copy:
        dims = dims_of(dense(tensor.shape, tensor.dtype), lead, most)
    cols = math.prod(tensor.shape[lead:])
    if part.kind in (MATRIX, WEIGHTS):
        _set_rows(getattr(desc, part.role), dims, cols)
    if part.kind != PLAIN:
        getattr(desc, part.role).dtype = DTYPES[tensor.dtype]
    place = native.tensors[native.count]
    native.count += 1
    place.place = ffi.offsetof("clnorm_args", part.role)
    place.bytes = (sum((count - 1) * stride for count, stride in dims) + cols) * size if 0 not in tensor.shape else 0
    place.width, place.stride = (number * size for number in _one_stride(dims, cols))
    place.read, place.written = part.read, written
    return copy


def _set_rows(of_tensor, dims: tuple, cols: int) -> None:
    if len(dims) > 1 or (dims and dims[0][1] < cols):
        for dim, (size, stride) in zip(of_tensor.outer, dims):
            dim.size, dim.stride = size, stride
    else:
        of_tensor.stride = dims[0][1] if dims else cols


def _one_stride(dims: tuple, width: int) -> tuple:
    """(width, stride) of rows, where dimensions without gaps count as one row; (0, 0) for rows of several strides."""
    rest = list(dims)
    while rest and rest[-1][1] == width:
        width *= rest.pop()[0]
    if len(rest) > 1 or (rest and rest[0][1] < width):
        return 0, 0
    return width, rest[0][1] if rest else width
