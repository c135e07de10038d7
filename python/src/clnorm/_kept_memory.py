"""Memory of large results, which is kept for later ones: to touch new memory takes longer than a norm that is written to
it. malloc keeps what is smaller, and returns from 32 MiB on everything to the system."""

from __future__ import annotations

import os
import weakref

import numpy

from clnorm._native import lib

LARGE = 32 << 20  # bytes
_PAGE = 2 << 20  # of the system's huge pages
# Blocks by (bytes, address), the oldest first. Threads and the garbage collector change it at any time: each use of it
# is one operation, which makes no objects while it looks through it.
_free: dict = {}


def _most() -> int:
    """Bytes that are kept at most."""
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
    """What the array of a result has as its base: views of an array have the base of that, not the array."""

    def __init__(self, address: int, size: int):
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}


def _keep(block) -> None:
    """Takes a block back, and lets go of the oldest ones where there is too much."""
    _free[block.nbytes, block.ctypes.data] = block
    while sum(other.nbytes for other in list(_free.values())) > _MOST:
        _free.pop(next(iter(list(_free)), None), None)


def take(size: int):
    """An array of so many bytes, LARGE and up, whose memory comes back when it is no longer used."""
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
