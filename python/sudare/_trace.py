"""Turns a Python function of matrices into the expression that a plan is made for."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from . import _core
from ._array import COLUMN, MATRIX, ArrayOperators, Floats, Lines, Shape
from ._errors import InputError, PlanError
from ._integers import exactly
from ._spec import Spec

NAMES = {"add": "add", "subtract": "sub", "multiply": "mul"}


@dataclass(frozen=True)
class Known:
    """A plain matrix: the input that it is or comes from, and the bound on its elements."""

    name: str
    source: str
    max_abs: float
    integer: bool = False


@dataclass(frozen=True)
class Node:
    """A value of the expression: its place and its rows and columns.

    A plain one has no place until something encrypted meets it: whatever is done to plain matrices alone is
    done in NumPy, before they are given to a server, so that the plan has the matrix that comes out of it.
    """

    index: int
    shape: tuple[int, int]
    batch: int = 1
    known: Known | None = None


class Graph:
    """An expression that grows with each operation."""

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.inputs: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.forms: dict[str, Node] = {}
        self.met: set[str] = set()

    def _node(self, shape: tuple[int, int], op: str, **operands: Any) -> Node:
        self.nodes.append({"op": op, **operands})
        return Node(len(self.nodes) - 1, shape)

    def _at(self, node: Node) -> int:
        """A value's place; a plain one gets it here."""
        if node.known is None:
            return node.index
        self.met.add(node.known.source)
        return self.input(node.known.name, node.shape, node.known.max_abs, True, node.known.integer).index

    def _done(
        self,
        shape: tuple[int, int],
        bound: Callable[..., float],
        op: str,
        operands: dict[str, Node],
        **others: Any,
    ) -> Node:
        """A node for an operation, or another plain matrix where all its operands are."""
        known = [node.known for node in operands.values() if node.known is not None]
        if len(known) < len(operands):
            return self._node(
                shape, op, **{name: self._at(node) for name, node in operands.items()}, **others
            )
        said = json.dumps(
            [op, [(k.name, node.shape) for k, node in zip(known, operands.values(), strict=True)], others]
        )
        if said not in self.forms:
            source = next((k.source for k in known if not k.source.startswith("plain ")), known[0].source)
            self.met.update(k.source for k in known if k.source != source)
            largest = bound(*(k.max_abs for k in known))
            form = Known(
                f"{source[:48]} ({len(self.forms) + 2})", source, largest, all(k.integer for k in known)
            )
            self.forms[said] = Node(-1, shape, known=form)
        return self.forms[said]

    def input(
        self, name: str, shape: tuple[int, int], max_abs: float, plain: bool, integer: bool = False
    ) -> Node:
        """A matrix that goes in. Bounds of integers stay exact beyond 2^53."""
        known = [i for i, entry in enumerate(self.inputs) if entry["name"] == name]
        if known:
            at = next(i for i, n in enumerate(self.nodes) if n == {"op": "input", "input": known[0]})
            return Node(at, shape)
        rows, cols = shape
        entry = {"name": name, "rows": rows, "cols": cols, "max_abs": float(max_abs), "plain": plain}
        self.inputs.append({**entry, "integers": int(max_abs)} if integer else entry)
        return self._node(shape, "input", input=len(self.inputs) - 1)

    def matmul(self, left: Node, right: Node) -> Node:
        """The matrix product."""
        (rows, inner), (_, cols) = left.shape, right.shape
        return self._done((rows, cols), lambda a, b: a * b * inner, "matmul", {"left": left, "right": right})

    def elementwise(self, operation: str, left: Node, right: Node) -> Node:
        """A sum, difference or product, element by element."""
        product = operation == "multiply"
        operands = {"left": left, "right": right}
        return self._done(left.shape, lambda a, b: a * b if product else a + b, NAMES[operation], operands)

    def negative(self, operand: Node) -> Node:
        """The negative."""
        return self._done(operand.shape, lambda a: a, "neg", {"of": operand})

    def scale(self, operand: Node, factor: float) -> Node:
        """The multiple by a number."""
        return self._done(operand.shape, lambda a: a * abs(factor) or a, "scale", {"of": operand}, by=factor)

    def shift(self, operand: Node, number: float) -> Node:
        """A number added to every element."""
        return self._done(operand.shape, lambda a: a + abs(number), "shift", {"of": operand}, by=number)

    def transpose(self, operand: Node) -> Node:
        """The transpose."""
        return self._done(operand.shape[::-1], lambda a: a, "transpose", {"of": operand})

    def sum(self, operand: Node, axis: int) -> Node:
        """The sum over an axis."""
        rows, cols = operand.shape
        shape = (1, cols) if axis == 0 else (rows, 1)
        return self._done(shape, lambda a: a * operand.shape[axis], "sum", {"of": operand}, axis=axis)

    def take(self, operand: Node, axis: int, lines: Lines) -> Node:
        """Rows or columns in other places."""
        rows, cols = operand.shape
        shape = (lines.size, cols) if axis == 0 else (rows, lines.size)
        return self._done(shape, lambda a: a, "take", {"of": operand}, axis=axis, lines=asdict(lines))

    def repeat(self, operand: Node, axis: int, size: int) -> Node:
        """The only row or column, `size` times."""
        rows, cols = operand.shape
        shape = (size, cols) if axis == 0 else (rows, size)
        return self._done(shape, lambda a: a, "repeat", {"of": operand}, axis=axis, size=size)

    def approximation(
        self, operand: Node, variable: Node, error: float, interval: tuple[float, float]
    ) -> Node:
        """A polynomial's value as that of a function of a variable."""
        (low, high), of = interval, {"of": operand}
        if operand.known is not None and variable.known is not None:
            if variable.known.max_abs > max(abs(low), abs(high)):
                raise PlanError(
                    f"{variable.known.name} is up to {variable.known.max_abs:g}, outside of the interval "
                    f"from {low:g} to {high:g}; widen it"
                )
            # Where the variable is a plain matrix, so is all that is made of it.
            return self._done(
                operand.shape, lambda a: a, "approximation", of, error=error, low=low, high=high
            )
        others = {"variable": self._at(variable), "error": error, "low": low, "high": high}
        return self._done(operand.shape, lambda a: a, "approximation", of, **others)

    def bound(self, node: Node) -> float:
        """The bound on a value that the expression tells so far."""
        if node.known is not None:
            return node.known.max_abs
        return _core.Plan.bound(
            json.dumps({"inputs": self.inputs, "nodes": self.nodes, "output": node.index})
        )

    def bounded(self, operand: Node, max_abs: float) -> Node:
        """A bound that the caller knows."""
        return self._done(
            operand.shape, lambda a: min(a, max_abs), "bounded", {"of": operand}, max_abs=max_abs
        )

    def lift(self, values: Floats) -> Node:
        """A plain matrix that the function brings along; the server needs it again to compute."""
        if not np.isfinite(values).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            name = weight_name(self.function, values)
            raise InputError(f"{name} is {values[at]} at {at}; a plain matrix holds finite numbers")
        rows, cols = values.shape
        integers = any("integers" in entry for entry in self.inputs)
        if integers:
            exactly(values)
        name = constant_name(values)
        known = Known(name, name, float(np.abs(values).max()) or 1.0, integers)
        return Node(-1, (rows, cols), known=known)


def constant_name(values: Floats) -> str:
    """The name of a plain matrix that has none: a digest of its contents."""
    digest = hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=12)
    digest.update(repr(values.shape).encode())
    return f"plain {digest.hexdigest()}"


def weight_name(function: Callable[..., Any] | None, values: Floats) -> str:
    """What a function calls a plain matrix that it brings along, as far as that can be seen."""
    if inspect.isfunction(function):
        known = inspect.getclosurevars(function)
        for name, x in {**known.globals, **known.nonlocals}.items():
            if isinstance(x, np.ndarray) and np.array_equal(x.ravel(), values.ravel(), equal_nan=True):
                return name
    return f"a plain matrix of shape {values.shape} in the planned function"


class Expression(ArrayOperators):
    """A matrix that `plan` hands to the function it plans: operators build the expression."""

    def __init__(self, graph: Graph, core: Node, dropped: Shape) -> None:
        self._graph, self._core, self._dropped = graph, core, dropped

    @property
    def _do(self) -> Graph:
        return self._graph

    @property
    def _bound(self) -> float:
        return self._graph.bound(self._core)

    def _wrap(self, core: Node, dropped: Shape) -> Expression:
        return Expression(self._graph, core, dropped)

    def __repr__(self) -> str:
        return f"<sudare expression {self.shape}>"


def trace(function: Callable[..., Any], specs: Mapping[str, Spec]) -> str:
    """The expression that a function computes, as JSON."""
    graph = Graph(function)
    operands = {}
    for name, spec in specs.items():
        if not isinstance(spec, Spec):
            raise PlanError(f"{name} is described by sudare.spec(shape, max_abs=…), not by {spec!r}")
        vector = len(spec.shape) == 1
        shape = (spec.shape[0], 1) if vector else (spec.shape[0], spec.shape[1])
        if spec.integer and spec.max_abs != int(spec.max_abs):
            raise InputError(f"max_abs of integers is an integer, not {spec.max_abs!r}")
        if spec.plain:
            core = Node(-1, shape, known=Known(name, name, spec.max_abs, spec.integer))
        else:
            core = graph.input(name, shape, spec.max_abs, False, spec.integer)
        operands[name] = Expression(graph, core, COLUMN if vector else MATRIX)
    result = function(**operands)
    if not isinstance(result, Expression):
        raise PlanError(
            f"the function has to return one matrix that it computed, not {type(result).__name__}"
        )
    output = graph._at(result._core)
    for name in specs:
        # What nothing is done with is refused, by its name.
        if operands[name]._core.known is not None and name not in graph.met:
            graph._at(operands[name]._core)
    return json.dumps({"inputs": graph.inputs, "nodes": graph.nodes, "output": output})
