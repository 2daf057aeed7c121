"""What a computation in a context would take: counted by tiles, timed on one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from ._array import COLUMN, MATRIX
from ._errors import PlanError, ShapeError, SudareError
from ._progress import duration, forecast
from ._spec import Spec
from ._trace import Expression, Graph, Node
from ._values import array

if TYPE_CHECKING:
    from ._context import Context

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """What a computation in a context would take."""

    seconds: float
    """Of its operations, on fresh matrices; deeper ones are quicker."""
    nbytes: int
    """Of its inputs and all that is computed of them, in memory at once."""

    def __str__(self) -> str:
        return f"about {duration(self.seconds)} and {self.nbytes / 1e6:.3g} MB"


#: One operation on a tile, by its name in an expression; others are taken for products element by element.
TIMED: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda x: x @ x,
    "add": lambda x: x + x,
    "sub": lambda x: x - x,
    "mul": lambda x: x * x,
    "neg": lambda x: -x,
    "scale": lambda x: x * 0.5,
    "shift": lambda x: x + 1.0,
    "transpose": lambda x: x.T,
    "sum": lambda x: x.sum(axis=0),
}


class _Counted(Graph):
    """An expression that knows the shapes of its nodes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.shapes: list[tuple[int, int]] = []

    def _node(self, shape: tuple[int, int], op: str, **operands: Any) -> Node:
        self.shapes.append(shape)
        return super()._node(shape, op, **operands)


class Tiles:
    """Times of operations on one tile of a context, each measured when it is first asked for."""

    def __init__(self, context: Context, tile: int) -> None:
        slots = 2 ** (context._server._core.log_n - 1)
        columns = context.columns
        self.sides = (tile, tile) if columns is None else (slots // columns, columns)
        self._context, self._seconds = context, dict[str, float]()
        self._tile = context.encrypt(np.full(self.sides, 0.5), max_abs=1)
        self.nbytes = self._tile.nbytes

    def count(self, shape: tuple[int, int]) -> int:
        """Tiles of a matrix."""
        return ceil(shape[0] / self.sides[0]) * ceil(shape[1] / self.sides[1])

    def seconds(self, op: str) -> float:
        """Of one operation on one tile, or of one product of tiles."""
        if op not in self._seconds:
            self._seconds[op] = self._timed(op)
        return self._seconds[op]

    def _timed(self, op: str) -> float:
        other = self._tile
        do = TIMED.get(op, TIMED["mul"])
        if op == "matmul" and self._context.columns is not None:
            do = TIMED["mul"]  # a product with a vector is one, and a sum
        try:
            do(other)  # what is prepared once is not timed
            began = time.perf_counter()
            do(other)
            return time.perf_counter() - began
        except SudareError:
            # A context of no depth has no such operation: what is estimated will say so when it is done.
            return 0.0


def estimate(
    context: Context, tiles: Tiles, function: Callable[..., Any], inputs: Mapping[str, Any]
) -> Estimate:
    """Counts the operations of a function by tiles, and warns of what is long or large."""
    graph, operands = _Counted(function), {}
    for name, given in inputs.items():
        shape = given.shape if isinstance(given, Spec) else array(given).shape
        if len(shape) not in (1, 2) or min(shape) < 1:
            raise ShapeError(f"{name} is a matrix or a vector, or a sudare.spec of one, not of shape {shape}")
        vector = len(shape) == 1
        plain = isinstance(given, Spec) and given.plain
        core = graph.input(name, (shape[0], 1) if vector else (shape[0], shape[1]), 1.0, plain)
        operands[name] = Expression(graph, core, COLUMN if vector else MATRIX)
    if not isinstance(function(**operands), Expression):
        raise PlanError("the function has to return one matrix that it computed")
    seconds, nbytes = 0.0, 0
    for node, shape in zip(graph.nodes, graph.shapes, strict=True):
        op = node["op"]
        nbytes += tiles.count(shape) * tiles.nbytes
        if op == "input":
            continue
        first = graph.shapes[node.get("left", node.get("of", 0))]
        count = tiles.count(first)
        if op == "matmul":
            # Every tile of the left factor meets a row of tiles of the right one.
            count *= ceil(shape[1] / tiles.sides[1])
        seconds += count * tiles.seconds(op)
    forecast("this computation", seconds, nbytes)
    return Estimate(seconds, nbytes)
