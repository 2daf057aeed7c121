"""Turns a Python function of matrices into the expression that a plan is made for."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from . import _core
from ._array import COLUMN, MATRIX, ArrayOperators, Floats, Operation, Shape
from ._errors import InputError, PlanError
from ._integers import exactly
from ._spec import Spec
from ._values import parts

#: Larger integers are no bounds of a computation.
LARGEST_INTEGER = 2**127 - 1


@dataclass(frozen=True)
class Known:
    """A plain matrix: the input that it is, and the one that it comes from."""

    name: str
    source: str


@dataclass(frozen=True)
class Node:
    """A value of the expression: its place, and what is known of it.

    A plain one has no place until something encrypted meets it: whatever is done to plain matrices alone is
    done in NumPy, before they are given to a server, so that the plan has the matrix that comes out of it.
    """

    index: int
    shape: tuple[int, int]
    max_abs: float
    #: The bound on integers, to the last digit.
    integers: int | None = None
    known: Known | None = None
    batch: int = 1
    #: The axis along which rows of any number lie, each computed with by itself.
    free: int | None = None
    #: Axes along which all lines are equal.
    equal: frozenset[int] = frozenset()


class Graph:
    """An expression that grows with each operation."""

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.inputs: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.values: list[Node] = []
        self.forms: dict[str, Node] = {}
        self.met: set[str] = set()
        # Plain matrices by the names of variables, where the function has them as such.
        self.called: dict[str, str] = {}
        # Whether there is an input with any number of rows.
        self.any_rows = False
        # Whether matrices are multiplied with plain vectors, and whether that is done by each element.
        self.vectors, self.elements = False, False
        # A bound that all products are said to keep, to find out what that would save.
        self.bound: float | None = None

    def apply(self, operation: Operation, *operands: Node) -> Node:
        """A node for an operation, or another plain matrix where all its operands are."""
        told = [(*node.shape, node.max_abs, whole(node.integers)) for node in operands]
        rows, cols, max_abs, integers = _core.infer(json.dumps(operation), told)
        free, equal = _rows(operation, operands) if self.any_rows else (None, frozenset[int]())
        made = Node(-1, (rows, cols), max_abs, integers, free=free, equal=equal)
        known = [node.known for node in operands if node.known is not None]
        if len(known) == len(operands):
            return self._form(operation, operands, known, made)
        value = self._node({**operation, "operands": [self._at(node) for node in operands]}, made)
        if self.bound is None or operation["op"] not in ("matmul", "mul") or value.max_abs <= self.bound:
            return value
        return self.apply({"op": "bounded", "max_abs": self.bound}, value)

    def _node(self, written: dict[str, Any], value: Node) -> Node:
        self.nodes.append(written)
        self.values.append(replace(value, index=len(self.values), known=None))
        return self.values[-1]

    def _form(self, operation: Operation, operands: tuple[Node, ...], known: list[Known], made: Node) -> Node:
        """What an operation makes of plain matrices: an input of its own."""
        if operation["op"] == "polynomial" and operands[0].max_abs > max(
            abs(operation["low"]), abs(operation["high"])
        ):
            raise PlanError(
                f"{known[0].name} is up to {operands[0].max_abs:g}, outside of the interval "
                f"from {operation['low']:g} to {operation['high']:g}; widen it"
            )
        said = json.dumps(
            [operation, [(k.name, node.shape) for k, node in zip(known, operands, strict=True)]]
        )
        if said not in self.forms:
            source = next((k.source for k in known if not k.source.startswith("plain ")), known[0].source)
            self.met.update(k.source for k in known if k.source != source)
            form = Known(f"{source[:48]} ({len(self.forms) + 2})", source)
            if made.max_abs == 0:
                # No matrix has a bound of zero.
                made = replace(made, max_abs=operands[0].max_abs, integers=operands[0].integers)
            self.forms[said] = replace(made, known=form)
        return self.forms[said]

    def _at(self, node: Node) -> int:
        """A value's place; a plain one gets it here."""
        if node.known is None:
            return node.index
        self.met.add(node.known.source)
        return self.input(node.known.name, node, plain=True).index

    def input(self, name: str, like: Node, *, plain: bool = False) -> Node:
        """A matrix that goes in."""
        known = [i for i, entry in enumerate(self.inputs) if entry["name"] == name]
        if known:
            return self.values[self.nodes.index({"op": "input", "input": known[0]})]
        rows, cols = like.shape
        entry = {"name": name, "rows": rows, "cols": cols, "max_abs": float(like.max_abs), "plain": plain}
        whole = {} if like.integers is None else {"integers": like.integers, "max_abs": float(like.integers)}
        self.inputs.append({**entry, **whole, **({} if like.free is None else {"block": True})})
        return self._node({"op": "input", "input": len(self.inputs) - 1}, like)

    def by_elements(self, length: int) -> bool:
        """Whether a product with a plain vector of a length is traced as products of each element."""
        self.vectors = True
        return self.elements

    def lift(self, values: Floats) -> Node:
        """A plain matrix that the function brings along; the server needs it again to compute."""
        if not np.isfinite(values).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            name = variable_name(self.function, values)
            name = name or f"a plain matrix of shape {values.shape} in the planned function"
            raise InputError(
                f"{name} is {values[at]} at {at}; a plain matrix holds finite numbers, so replace it"
            )
        rows, cols = values.shape
        integers = any("integers" in entry for entry in self.inputs)
        if integers:
            exactly(values)
        name, called = constant_name(values), variable_name(self.function, values)
        if called is not None:
            self.called[name] = called
        largest = float(np.abs(values).max()) or 1.0
        lines = (values == values[:1]).all(), (values == values[:, :1]).all()
        equal = frozenset(axis for axis in (0, 1) if lines[axis])
        bound = int(largest) if integers else None
        return Node(-1, (rows, cols), largest, bound, Known(name, name), equal=equal)


def _rows(operation: Operation, operands: Sequence[Node]) -> tuple[int | None, frozenset[int]]:
    """Where rows of any number lie in a result, and the axes along which its lines are equal.

    Raises `PlanError` where an operation does not compute each row by itself.
    """
    op, axis, first = operation["op"], int(operation.get("axis", 0)), operands[0]
    free, equal = first.free, first.equal

    def refuse(what: str) -> NoReturn:
        raise PlanError(
            f"{what} takes several of the rows of which there is any number; give their number, "
            "sudare.spec((1000, 30)), or do it to what is decrypted"
        )

    if op == "transpose":
        return None if free is None else 1 - free, frozenset(1 - a for a in equal)
    if op == "matmul":
        left, right = operands
        if left.free == 1 or right.free == 0 or None not in (left.free, right.free):
            refuse("a matrix product along them")
        free = 0 if left.free == 0 else right.free
        return free, (left.equal & {0}) | (right.equal & {1})
    if op in ("sum", "take", "repeat"):
        if free == axis:
            refuse({"sum": "a sum over them", "take": "a slice of them"}.get(op, "an operation along them"))
        lines = operation.get("lines", {})
        whole = op != "take" or lines["count"] == lines["size"]
        return free, (equal | {axis}) if op != "take" else equal if whole else equal - {axis}
    for other in operands[1:]:
        for x, y in ((first, other), (other, first)):
            if x.free is not None and x.free != y.free and (y.free is not None or x.free not in y.equal):
                refuse("an operation with something else for each of them")
        free, equal = other.free if free is None else free, equal & other.equal
    return free, equal


def whole(bound: int | None) -> int | None:
    """A bound on integers, as far as it can be computed with."""
    return None if bound is None else min(bound, LARGEST_INTEGER)


def constant_name(values: Floats) -> str:
    """The name of a plain matrix that has none: a digest of its contents."""
    digest = hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=12)
    digest.update(repr(values.shape).encode())
    return f"plain {digest.hexdigest()}"


def variable_name(function: Callable[..., Any] | None, values: Floats) -> str | None:
    """What a function calls a plain matrix that it brings along, as far as that can be seen."""
    if inspect.isfunction(function):
        known = inspect.getclosurevars(function)
        for name, x in {**known.globals, **known.nonlocals}.items():
            if isinstance(x, np.ndarray) and _equal(x, values):
                return name
    return None


def _equal(x: Any, values: Floats) -> bool:
    """Whether values are those of an array in any shape, or a vector in each row or column."""
    if x.size == values.size:
        return np.array_equal(x.ravel(), values.ravel(), equal_nan=True)
    return any(
        x.size == values.shape[axis]
        and np.array_equal(np.broadcast_to(x.reshape(side), values.shape), values, equal_nan=True)
        for axis, side in ((1, (1, -1)), (0, (-1, 1)))
    )


class Expression(ArrayOperators):
    """A matrix that `plan` hands to the function it plans: operators build the expression."""

    def __init__(self, graph: Graph, core: Node, dropped: Shape) -> None:
        self._graph, self._core, self._dropped = graph, core, dropped

    @property
    def _place(self) -> Graph:
        return self._graph

    def _wrap(self, core: Node, dropped: Shape) -> Expression:
        return Expression(self._graph, core, dropped)

    def __repr__(self) -> str:
        return f"<sudare expression {self.shape}>"


@dataclass(frozen=True)
class Traced:
    """What a function computes, and what is known of it where it is planned."""

    expression: str
    #: Operations whose values the result does not need.
    unused: frozenset[str]
    #: Variables, by the names that the expression has for plain matrices.
    called: Mapping[str, str]
    #: Whether it multiplies matrices with plain vectors, and whether that is done by each element.
    vectors: bool
    by_elements: bool


def trace(function: Callable[..., Any], specs: Mapping[str, Spec]) -> str:
    """The expression that a function computes, as JSON."""
    return traced(function, specs).expression


def traced(
    function: Callable[..., Any],
    specs: Mapping[str, Spec],
    rows: int = 2,
    *,
    by_elements: bool = False,
    bound: float | None = None,
) -> Traced:
    """The expression that a function computes of blocks of so many rows, and what is not in it.

    With `by_elements`, products with plain vectors are written as products of each element and their sums;
    with a `bound`, all products are said to keep it.
    """
    graph = Graph(function)
    graph.elements, graph.bound = by_elements, bound
    graph.any_rows = any(isinstance(spec, Spec) and spec.any_rows for spec in specs.values())
    operands = {}
    for name, spec in specs.items():
        if not isinstance(spec, Spec):
            raise PlanError(f"{name} is described by sudare.spec(shape, max_abs=…), not by {spec!r}")
        sides: Any = spec.of_rows(rows).shape
        vector = len(sides) == 1
        shape = (sides[0], 1) if vector else (sides[0], sides[1])
        if spec.integer and spec.max_abs != int(spec.max_abs):
            raise InputError(f"max_abs of integers has to be an integer, not {spec.max_abs!r}")
        bound = int(spec.max_abs) if spec.integer else None
        free = 0 if spec.any_rows else None
        core = Node(-1, shape, spec.max_abs, bound, Known(name, name) if spec.plain else None, free=free)
        if not spec.plain:
            core = graph.input(name, core)
        operands[name] = Expression(graph, core, COLUMN if vector else MATRIX)
    result = function(**operands)
    outputs = list[int]()
    for part in parts(result):
        if not isinstance(part, Expression):
            raise PlanError(
                "the function has to return one matrix that it computed, or several in a tuple, a dictionary "
                f"or a dataclass, not {type(part).__name__}"
            )
        seen = [axis for axis in (0, 1) if axis not in part._dropped]
        if graph.any_rows and (not seen or part._core.free != seen[0]):
            raise PlanError(
                "a result has a row for each of the rows of which there is any number, and this has none"
            )
        outputs.append(graph._at(part._core))
    if not outputs:
        raise PlanError("the function has to return what it computed, and it returns nothing; add a return")
    for name in specs:
        # What nothing is done with is refused, by its name.
        if operands[name]._core.known is not None and name not in graph.met:
            graph._at(operands[name]._core)
    expression, unused = _needed(graph, list(dict.fromkeys(outputs)), set(specs))
    return Traced(expression, unused, graph.called, graph.vectors, by_elements)


def _needed(graph: Graph, outputs: list[int], names: set[str]) -> tuple[str, frozenset[str]]:
    """The expression without what its results do not need, but for the inputs that were declared."""
    kept = {
        at
        for at, node in enumerate(graph.nodes)
        if node["op"] == "input" and graph.inputs[node["input"]]["name"] in names
    }
    wanted = [*outputs]
    while wanted:
        at = wanted.pop()
        kept.add(at)
        wanted += graph.nodes[at].get("operands", [])
    places = {at: new for new, at in enumerate(sorted(kept))}
    given = sorted(graph.nodes[at]["input"] for at in kept if graph.nodes[at]["op"] == "input")
    nodes = []
    for at in sorted(kept):
        node = dict(graph.nodes[at])
        if node["op"] == "input":
            node["input"] = given.index(node["input"])
        if "operands" in node:
            node["operands"] = [places[operand] for operand in node["operands"]]
        nodes.append(node)
    unused = frozenset(
        json.dumps({key: value for key, value in node.items() if key != "operands"})
        for at, node in enumerate(graph.nodes)
        if at not in kept
    )
    inputs = [graph.inputs[number] for number in given]
    first, *others = (places[output] for output in outputs)
    several = {"others": others} if others else {}
    return json.dumps({"inputs": inputs, "nodes": nodes, "output": first, **several}), unused
