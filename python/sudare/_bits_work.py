"""A server of encrypted integers at work: long operations go in pieces, with a bar and a forecast.

Elements of an array do not know of each other, so that a piece of an operation is the operation of a piece.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._memory import require
from ._progress import forecast, progress

__all__ = ["BLOCK", "Worker", "blocks"]

Words = NDArray[np.uint64]
Array = _core.BitsArray

#: Bytes that encryption takes for a block at its peak.
BLOCK = 48


def blocks(element: str) -> int:
    """Blocks of an element: two bits each, or one boolean."""
    return 1 if element == "bool" else int(element.removeprefix("u").removeprefix("int")) // 2


#: What takes no bootstrap: pieces would only cost copies.
LINEAR = frozenset(["add", "subtract"])
#: Seconds of a piece, and those under which there is no second one.
PIECE, SHORT = 0.3, 1.0


class Worker:
    """The operations of a server on arrays."""

    def __init__(self, core: _core.BitsServer, dimension: int) -> None:
        self._core, self._word = core, 8 * (dimension + 1)

    def _require(self, name: str, operands: list[Array]) -> None:
        """Refuses operands that, with masks, and a result of their size do not fit into memory."""
        count = sum(
            int(np.prod(x.shape, dtype=np.int64)) * blocks(x.element) for x in [*operands, operands[0]]
        )
        require(count * self._word, name, "compute it in parts")

    def plain(self, element: str, shape: list[int], values: Words) -> Array:
        """An array that the server sees."""
        return self._core.plain(element, shape, values)

    def elementwise(self, name: str, left: Array, right: Array) -> Array:
        """An operation of two arrays by NumPy's name for it."""
        if name in LINEAR and left.element != "bool":
            self._require(name, [left, right])
            return self._core.elementwise(name, left, right)
        return self._pieces(name, [left, right], lambda parts, _: self._core.elementwise(name, *parts))

    def choice(self, condition: Array, first: Array, second: Array) -> Array:
        """Elements of the first where the condition holds, else of the second."""
        return self._pieces("where", [condition, first, second], lambda parts, _: self._core.choice(*parts))

    def shift(self, name: str, operand: Array, by: Words) -> Array:
        """A shift by a public number for each element."""
        return self._pieces(name, [operand], lambda parts, at: self._core.shift(name, parts[0], by[at]))

    def shift_by(self, name: str, operand: Array, by: Array) -> Array:
        """A shift by an encrypted number for each element."""
        return self._pieces(name, [operand, by], lambda parts, _: self._core.shift_by(name, *parts))

    def lookup(self, operand: Array, table: Words, element: str) -> Array:
        """The table's entry for each element."""
        return self._pieces("lookup", [operand], lambda parts, _: self._core.lookup(parts[0], table, element))

    def convert(self, operand: Array, element: str) -> Array:
        """The same numbers as another type."""
        return self._pieces("astype", [operand], lambda parts, _: self._core.convert(parts[0], element))

    def settle(self, operand: Array) -> Array:
        """The same array with no carry waiting."""
        return self._pieces("settle", [operand], lambda parts, _: self._core.settle(parts[0]))

    def invert(self, operand: Array) -> Array:
        """Every bit flipped."""
        return self._core.invert(operand)

    def negative(self, operand: Array) -> Array:
        """The negative."""
        return self._pieces("negative", [operand], lambda parts, _: self._core.negative(parts[0]))

    def reduce(self, name: str, operand: Array, shape: list[int]) -> Array:
        """Whether any or all of the booleans along the first axis are true."""
        return self._core.reduce(name, operand, shape)

    def _pieces(self, name: str, operands: list[Array], work: Callable[[list[Array], slice], Array]) -> Array:
        """The operation, and from the second piece on a forecast and a bar if it takes long."""
        self._require(name, operands)
        shape = operands[0].shape
        size, lanes = int(np.prod(shape, dtype=np.int64)), 4 * self._core.threads
        if size <= 2 * lanes:
            return work(operands, slice(None))
        out: list[Array] = []
        at, step = 0, 2 * lanes
        with progress(name) as report:
            while at < size:
                started, here = time.monotonic(), slice(at, min(at + step, size))
                numbers = list(range(here.start, here.stop))
                out.append(work([x.take([len(numbers)], numbers) for x in operands], here))
                each = (time.monotonic() - started) / len(numbers)
                left = size - here.stop
                if at == 0:
                    forecast(f"{name} of {size} elements", each * size)
                at = here.stop
                if report is not None:
                    report(at, size)
                short = each * left < SHORT
                step = left if short else max(lanes, int(PIECE / each) // lanes * lanes)
        return Array.concatenated(out).take(shape, list(range(size)))
