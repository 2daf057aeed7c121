"""What a computation in a context would take: counted by tiles, timed on one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
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
    from ._matrix import Encrypted

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """What a computation in a context would take.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> cost = ctx.estimate(lambda A: A @ A, A=sd.spec((4, 4)))
    >>> cost.seconds > 0 and cost.nbytes > 0
    True
    """

    seconds: float
    """Of its operations, on fresh matrices; deeper ones are quicker."""
    nbytes: int
    """Of its inputs and all that is computed of them, in memory at once."""

    def __str__(self) -> str:
        return f"about {duration(self.seconds)} and {self.nbytes / 1e6:.3g} MB"


#: One operation on a tile, by its name in an expression; others are taken for products element by element.
TIMED: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + x,
    "sub": lambda x: x - x,
    "mul": lambda x: x * x,
    "neg": lambda x: -x,
    "scale": lambda x: x * 0.5,
    "shift": lambda x: x + 1.0,
    "transpose": lambda x: x.T,
    "sum": lambda x: x.sum(axis=0),
}
#: An operation is timed so many times, and the least counts: others work on the machine, too.
TIMES = 2


class Tiles:
    """Times of operations on one tile of a context, each measured when it is first asked for."""

    def __init__(self, context: Context, tile: int) -> None:
        slots = 2 ** (context._server._core.log_n - 1)
        columns = context.columns
        self.sides = (tile, tile) if columns is None else (slots // columns, columns)
        self._context, self._seconds = context, dict[str, float]()
        self._tile = self._filled(1, 1)
        self.nbytes = self._tile.nbytes

    def _filled(self, down: int, across: int) -> Encrypted:
        rows, columns = self.sides
        return self._context.encrypt(np.full((down * rows, across * columns), 0.5), max_abs=1)

    def grid(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of tiles of a matrix."""
        return ceil(shape[0] / self.sides[0]), ceil(shape[1] / self.sides[1])

    def seconds(self, op: str) -> float:
        """Of one operation on one tile."""
        if op not in self._seconds:
            self._seconds[op] = _timed(TIMED.get(op, TIMED["mul"]), self._tile)
        return self._seconds[op]

    def product(self, left: tuple[int, int], right: tuple[int, int]) -> float:
        """Of a matrix product: tiles are spread once, multiplied in pairs, those of the result folded."""
        (rows, inner), columns = self.grid(left), self.grid(right)[1]
        if self._context.columns is not None:
            # With a vector: a product element by element, and a sum.
            return rows * inner * (self.seconds("mul") + self.seconds("sum"))
        if "fold" not in self._seconds:
            one, wide, tall = self._tile, self._filled(1, 2), self._filled(2, 1)
            once = _timed(lambda x: x @ x, one)  # two spread, one multiplied, one folded
            longer = _timed(lambda x: x @ tall, wide)  # four, two, one
            wider = _timed(lambda x: x @ wide, one)  # three, two, two
            fold, spread = max(2 * once - longer, 0.0), max(2 * once - wider, 0.0)
            self._seconds |= {"fold": fold, "spread": spread, "pair": max(once - fold - 2 * spread, 0.0)}
        spreads, pairs, folds = (rows + columns) * inner, rows * inner * columns, rows * columns
        each = [self._seconds[part] for part in ("spread", "pair", "fold")]
        return spreads * each[0] + pairs * each[1] + folds * each[2]


def products(node: dict[str, Any]) -> float:
    """Operations of a node; a polynomial is about so many products (Paterson and Stockmeyer 1973)."""
    return 2 * sqrt(len(node["coefficients"])) if node["op"] == "polynomial" else 1


def _timed(do: Callable[[Any], Any], operand: Encrypted) -> float:
    try:
        do(operand)  # what is prepared once is not timed
        least = float("inf")
        for _ in range(TIMES):
            began = time.perf_counter()
            do(operand)
            least = min(least, time.perf_counter() - began)
        return least
    except SudareError:
        # A context of no depth has no such operation: it says so when it is asked for it.
        return 0.0


def estimate(
    context: Context, tiles: Tiles, function: Callable[..., Any], inputs: Mapping[str, Any]
) -> Estimate:
    """Counts the operations of a function by tiles, and warns of what is long or large."""
    graph, operands = Graph(function), {}
    for name, given in inputs.items():
        shape = given.shape if isinstance(given, Spec) else array(given).shape
        if len(shape) not in (1, 2) or min(shape) < 1:
            raise ShapeError(f"{name} is a matrix or a vector, or a sudare.spec of one, not of shape {shape}")
        vector = len(shape) == 1
        plain = isinstance(given, Spec) and given.plain
        sides = (shape[0], 1) if vector else (shape[0], shape[1])
        core = graph.input(name, Node(-1, sides, 1.0), plain=plain)
        operands[name] = Expression(graph, core, COLUMN if vector else MATRIX)
    if not isinstance(function(**operands), Expression):
        raise PlanError("the function has to return one matrix that it computed")
    seconds, nbytes = 0.0, 0
    for node, value in zip(graph.nodes, graph.values, strict=True):
        op, (down, across) = node["op"], tiles.grid(value.shape)
        nbytes += down * across * tiles.nbytes
        shapes = [graph.values[operand].shape for operand in node.get("operands", [])]
        if op == "matmul":
            seconds += tiles.product(*shapes)
        elif shapes:
            down, across = tiles.grid(shapes[0])
            seconds += down * across * tiles.seconds(op) * products(node)
    forecast("this computation", seconds, nbytes)
    return Estimate(seconds, nbytes)
