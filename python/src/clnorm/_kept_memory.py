"""Memory of large results, kept for later results: the first access to new memory takes longer than a norm. malloc keeps
smaller blocks itself, and returns blocks of 32 MiB and more to the system."""

from __future__ import annotations

import os
import weakref

import numpy

from clnorm._native import lib

LARGE = 32 << 20  # bytes
_PAGE = 2 << 20  # bytes of one of the system's huge pages
# Blocks by (bytes, address), the oldest first. Threads and the garbage collector may change it at any time, so each access
# is one operation of the interpreter, and creates no objects while it iterates: these could start the collector.
_free: dict = {}


def _most() -> int:
    """The largest number of bytes that are kept."""
    text = os.environ.get("CLNORM_KEPT_MIB") or "256"
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError(f"CLNORM_KEPT_MIB is {text!r}: expected a number of MiB, 0 or more")
    return number << 20


_MOST = _most()


class _Lent:
    """The base of a result's array. NumPy gives the views of an array the same base, so it lives as long as any of them."""

    def __init__(self, address: int, size: int):
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}


def _keep(block) -> None:
    """Takes a block back, and frees the oldest ones above the limit."""
    _free[block.nbytes, block.ctypes.data] = block
    while sum(other.nbytes for other in list(_free.values())) > _MOST:
        _free.pop(next(iter(list(_free)), None), None)


def take(size: int):
    """An array of `size` bytes, LARGE or more. Its memory is kept when nothing refers to it any more."""
    whole = -(-size // _PAGE) * _PAGE
    found = [key for key in list(_free) if key[0] == whole]
    block = next((block for key in found if (block := _free.pop(key, None)) is not None), None)
    if block is None:
        memory = numpy.empty(whole + _PAGE, numpy.uint8)
        start = -memory.ctypes.data % _PAGE
        block = memory[start:start + whole]
        lib.cln_use_huge_pages(block.ctypes.data, whole)
    lent = _Lent(block.ctypes.data, size)
    weakref.finalize(lent, _keep, block).atexit = False
    return numpy.asarray(lent)
