"""Turns a Python function of matrices into the expression that a plan is made for."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._array import COLUMN, MATRIX, ArrayOperators, Floats, Shape
from ._errors import InputError, PlanError
from ._integers import exactly
from ._spec import Spec

NAMES = {"add": "add", "subtract": "sub", "multiply": "mul"}


@dataclass(frozen=True)
class Node:
    """A value of the expression: its place and its rows and columns."""

    index: int
    shape: tuple[int, int]
    batch: int = 1


class Graph:
    """An expression that grows with each operation."""

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.inputs: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []

    def _node(self, shape: tuple[int, int], op: str, **operands: Any) -> Node:
        self.nodes.append({"op": op, **operands})
        return Node(len(self.nodes) - 1, shape)

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
        return self._node((left.shape[0], right.shape[1]), "matmul", left=left.index, right=right.index)

    def elementwise(self, operation: str, left: Node, right: Node) -> Node:
        """A sum, difference or product, element by element."""
        return self._node(left.shape, NAMES[operation], left=left.index, right=right.index)

    def negative(self, operand: Node) -> Node:
        """The negative."""
        return self._node(operand.shape, "neg", of=operand.index)

    def scale(self, operand: Node, factor: float) -> Node:
        """The multiple by a number."""
        return self._node(operand.shape, "scale", of=operand.index, by=factor)

    def shift(self, operand: Node, number: float) -> Node:
        """A number added to every element."""
        return self._node(operand.shape, "shift", of=operand.index, by=number)

    def transpose(self, operand: Node) -> Node:
        """The transpose."""
        return self._node(operand.shape[::-1], "transpose", of=operand.index)

    def sum(self, operand: Node, axis: int) -> Node:
        """The sum over an axis."""
        rows, cols = operand.shape
        return self._node((1, cols) if axis == 0 else (rows, 1), "sum", of=operand.index, axis=axis)

    def bounded(self, operand: Node, max_abs: float) -> Node:
        """A bound that the caller knows."""
        return self._node(operand.shape, "bounded", of=operand.index, max_abs=max_abs)

    def lift(self, values: Floats) -> Node:
        """A plain matrix that the function brings along; the server needs it again to compute."""
        if not np.isfinite(values).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            name = weight_name(self.function, values)
            raise InputError(f"{name} is {values[at]} at {at}; a plain matrix holds finite numbers")
        (rows, cols), largest = values.shape, float(np.abs(values).max()) or 1.0
        exact = any("integers" in entry for entry in self.inputs)
        if exact:
            exactly(values)
        return self.input(constant_name(values), (rows, cols), largest, True, exact)


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
        core = graph.input(name, shape, spec.max_abs, spec.plain, spec.integer)
        operands[name] = Expression(graph, core, COLUMN if vector else MATRIX)
    result = function(**operands)
    if not isinstance(result, Expression):
        raise PlanError(
            f"the function has to return one matrix that it computed, not {type(result).__name__}"
        )
    return json.dumps({"inputs": graph.inputs, "nodes": graph.nodes, "output": result._core.index})
