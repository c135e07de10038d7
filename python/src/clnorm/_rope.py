"""Rotary position embedding of the results of layer norm and RMS norm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional, Tuple, Union

from clnorm._native import lib
from clnorm._record import PLAIN, WEIGHTS, fail
from clnorm._shapes import chosen, integer

INPUTS = ("rope_cos", "rope_sin", "position")
NAMES = ("rope.cos", "rope.sin", "rope.position")
KINDS = {"rope_cos": WEIGHTS, "rope_sin": WEIGHTS, "position": PLAIN}
_STYLES = {"neox": lib.CLNORM_ROPE_NEOX, "interleaved": lib.CLNORM_ROPE_INTERLEAVED}


class Rope(NamedTuple):
    """Rotary position embedding (Su et al. 2021) of a norm's result, for `rope=`.

    The first 2 * pairs columns of x, or of each segment with group_size, are rotated in pairs: of columns a and b

        a' = a * cos - b * sin        b' = b * cos + a * sin

    cos, sin:  (positions, pairs), float32, float16 or bfloat16; float64 where x has it. Hugging Face's tables have each
               angle twice, (positions, 2 * pairs): pass their left half, cos[:, :pairs].
    position:  int32, of the shape of x's rows or of their first dimensions: (samples, tokens) for an x of (samples, tokens,
               heads, columns). The result is NaN where the tables do not have a position. None: row r of x has position
               r // repeat.
    style:     "neox": pair i is columns i and i + pairs. "interleaved": columns 2 * i and 2 * i + 1.
    repeat:    only without position: neighbouring rows that share a position, such as the heads of a token.
    """

    cos: Any
    sin: Any
    position: Optional[Any] = None
    style: str = "neox"
    repeat: int = 1


Rotation = Union[Rope, Tuple[Any, ...], None]  # what `rope=` takes; a tuple is (cos, sin, …) in the order of Rope


def parts(rope) -> tuple:
    """(the arrays of a Rope, its other options), for None too."""
    if rope is None:
        return (None, None, None), None
    if not isinstance(rope, tuple) or not 2 <= len(rope) <= 5 or rope[0] is None or rope[1] is None:
        fail("rope", "a clnorm.Rope, or (cos, sin)", type(rope).__name__)
    rope = Rope(*rope)
    return tuple(rope[:3]), (rope.style, integer("rope.repeat", rope.repeat, 1))


def _repeat(tensors, shape, lead, repeat) -> int:
    """The number of neighbouring rows that share a position."""
    if "position" not in tensors:
        if repeat < 1:
            fail("rope.repeat", "a number of rows", repeat)
        return repeat
    position = tensors["position"]
    if repeat != 1:
        fail("rope.repeat", "1 with a position, whose shape says which rows share one", repeat)
    if position.dtype != "int32":
        fail("rope.position", "dtype int32", position.dtype)
    count = len(position.shape)
    if count > lead or position.shape != tuple(shape[:count]):
        fail("rope.position", f"shape {tuple(shape[:lead])}, or its first dimensions", position.shape)
    return max(math.prod(shape[count:lead]), 1)


def fields(tensors, shape, lead, group_size, options) -> dict:
    """The fields of a descriptor; {} where there is no rope."""
    if options is None:
        return {}
    style, repeat = options
    table, width = tensors["rope_cos"].shape, group_size or math.prod(shape[lead:])
    if len(table) != 2 or not 0 < 2 * table[1] <= width:
        fail("rope.cos", f"shape (positions, pairs) with up to {width // 2} pairs", table)
    if tensors["rope_sin"].shape != table:
        fail("rope.sin", f"the shape of rope.cos, {table}", tensors["rope_sin"].shape)
    repeat, rows = _repeat(tensors, shape, lead, repeat), math.prod(shape[:lead])
    if "position" not in tensors and table[0] * repeat < rows:
        fail("rope.cos", f"{-(-rows // repeat)} positions for {rows} rows with a repeat of {repeat}", table[0])
    return {
        "rope": chosen("rope.style", style, _STYLES), "rope_dims": 2 * table[1], "rope_positions": table[0],
        "rope_repeat": repeat, "position_given": "position" in tensors,
    }
