"""Random expressions of matrices, vectors and numbers that NumPy computes as well.

Leaves are inputs, encrypted or plain, by their names. A function is kept beside its text, so that a
failure says what was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Values = Mapping[str, Any]
Function = Callable[[Values], Any]

# Largest value of a result: more tells of nothing but scales.
LARGEST = 1e3


@dataclass(frozen=True)
class Case:
    """An expression, its inputs, and what NumPy makes of them."""

    text: str
    function: Function
    inputs: dict[str, Floats]
    plain: frozenset[str]

    @property
    def result(self) -> Any:
        """What NumPy computes."""
        return self.function(self.inputs)


def put(x: Any, key: Any, value: Any) -> Any:
    """An array with other elements."""
    x = x.copy()
    x[key] = value
    return x


@dataclass(frozen=True)
class _Part:
    text: str
    function: Function
    value: Any
    encrypted: bool


class _Growing:
    """One expression while it grows."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.inputs: dict[str, Floats] = {}
        self.plain: set[str] = set()

    def pick(self, choices: list[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def leaf(self, shape: tuple[int, ...], *, plain: bool) -> _Part:
        alike = [n for n, v in self.inputs.items() if v.shape == shape and (n in self.plain) == plain]
        if alike and self.rng.random() < 0.5:
            name = str(self.pick(alike))
        else:
            name = f"{'p' if plain else 'x'}{len(self.inputs)}"
            self.inputs[name] = self.rng.uniform(-1, 1, shape).round(3)
            if plain:
                self.plain.add(name)
        return _Part(name, lambda v: v[name], self.inputs[name], not plain)

    def unary(self, a: _Part) -> _Part:
        """An operation on one operand that its shape allows."""
        shape, f = np.shape(a.value), a.function
        known: list[tuple[str, Function]] = [
            (f"-{a.text}", lambda v: -f(v)),
            (f"({a.text} * 0.75)", lambda v: f(v) * 0.75),
            (f"(2 * {a.text})", lambda v: 2 * f(v)),
            (f"(1.5 - {a.text})", lambda v: 1.5 - f(v)),
            (f"({a.text} / 4)", lambda v: f(v) / 4),
            (f"{a.text} ** 2", lambda v: f(v) ** 2),
            (f"{a.text} ** 3", lambda v: f(v) ** 3),
            (f"polyval([0.5, -1, 0.25], {a.text})", lambda v: np.polyval([0.5, -1, 0.25], f(v))),
        ]
        if shape:
            weights = self.rng.uniform(-1, 1, shape[-1]).round(2)
            known += [
                (f"({a.text} @ {weights})", lambda v: f(v) @ weights),
                (f"{a.text}.T", lambda v: f(v).T),
                (f"sum({a.text})", lambda v: np.sum(f(v))),
                (f"mean({a.text}, 0)", lambda v: np.mean(f(v), axis=0)),
                (f"sum({a.text}, -1, keepdims)", lambda v: np.sum(f(v), axis=-1, keepdims=True)),
                (f"var({a.text}, 0)", lambda v: np.var(f(v), axis=0)),
                (f"{a.text}[0]", lambda v: f(v)[0]),
                (f"{a.text}[-1:]", lambda v: f(v)[-1:]),
                (f"{a.text}[::-1]", lambda v: f(v)[::-1]),
                (f"{a.text}[::2]", lambda v: f(v)[::2]),
                (f"ravel({a.text})", lambda v: np.ravel(f(v))),
                (f"reshape({a.text}, (1, -1))", lambda v: np.reshape(f(v), (1, -1))),
                (f"concatenate([{a.text}, {a.text}])", lambda v: np.concatenate([f(v), f(v)])),
                (f"({a.text} - mean)", lambda v: f(v) - f(v).mean(axis=0)),
                *self.words(a),
            ]
        if len(shape) == 1:
            kernel = self.rng.uniform(-1, 1, 2).round(2)
            mode: Any = self.pick(["full", "same", "valid"])
            known += [
                (f"convolve({a.text}, {kernel}, {mode})", lambda v: np.convolve(f(v), kernel, mode)),
                (f"correlate({a.text}, {kernel}, {mode})", lambda v: np.correlate(f(v), kernel, mode)),
                (f"tril({a.text})", lambda v: np.tril(f(v))),
                (f"vecdot({a.text}, {a.text})", lambda v: np.vecdot(f(v), f(v))),
                (f"{a.text}[:, None]", lambda v: f(v)[:, None]),
                (f"outer({a.text}, {a.text})", lambda v: np.outer(f(v), f(v))),
                (f"stack([{a.text}, {a.text}], 1)", lambda v: np.stack([f(v), f(v)], axis=1)),
                (f"diag({a.text})", lambda v: np.diag(f(v))),
            ]
        if len(shape) == 2:
            known += [
                (f"{a.text}[:, 0]", lambda v: f(v)[:, 0]),
                (f"{a.text}[1:, :2]", lambda v: f(v)[1:, :2]) if shape[0] > 1 else (a.text, f),
                (f"trace({a.text})", lambda v: np.trace(f(v))),
                (f"diag({a.text})", lambda v: np.diag(f(v))),
                (f"reshape({a.text}, {shape[::-1]})", lambda v: np.reshape(f(v), shape[::-1])),
                (f"({a.text}.T @ {a.text})", lambda v: f(v).T @ f(v)),
                (f"rot90({a.text})", lambda v: np.rot90(f(v))),
                (f"triu({a.text}, 1)", lambda v: np.triu(f(v), 1)),
                (f"block({a.text})", lambda v: np.block([[f(v), f(v)[:, :1]]])),
                (f"moveaxis({a.text})", lambda v: np.moveaxis(f(v), 0, 1)),
                (f"roll({a.text}, (1, 2), (0, 1))", lambda v: np.roll(f(v), (1, 2), (0, 1))),
                (f"reshape({a.text}, -1, 'F')", lambda v: np.reshape(f(v), -1, order="F")),
                (f"matvec({a.text}, {a.text}[0])", lambda v: np.matvec(f(v), f(v)[0])),
                (f"put({a.text}, row 0)", lambda v: put(f(v), 0, f(v)[-1] * 2)),
            ]
        text, function = self.pick(known)
        return _Part(text, function, function(self.inputs), a.encrypted)

    def words(self, a: _Part) -> list[tuple[str, Function]]:
        """NumPy's functions that put lines in another order, beside others, or away."""
        shape, f = np.shape(a.value), a.function
        lines, axis = shape[0], int(self.rng.integers(len(shape)))
        order = [int(n) for n in self.rng.integers(0, lines, int(self.rng.integers(1, 5)))]
        mask = self.rng.random(shape) < 0.5
        by, value = int(self.rng.integers(-3, 4)), round(float(self.rng.uniform(-1, 1)), 2)
        return [
            (f"flip({a.text}, {axis})", lambda v: np.flip(f(v), axis)),
            (f"roll({a.text}, {by}, {axis})", lambda v: np.roll(f(v), by, axis)),
            (f"pad({a.text}, 1, {value})", lambda v: np.pad(f(v), 1, constant_values=value)),
            (f"pad({a.text}, 1, edge)", lambda v: np.pad(f(v), 1, mode="edge")),
            (f"repeat({a.text}, 2, {axis})", lambda v: np.repeat(f(v), 2, axis)),
            (f"tile({a.text}, 2)", lambda v: np.tile(f(v), 2)),
            (f"take({a.text}, {order})", lambda v: np.take(f(v), order, axis=0)),
            (f"{a.text}[{order}]", lambda v: f(v)[order]),
            (f"cumsum({a.text}, {axis})", lambda v: np.cumsum(f(v), axis)),
            (f"{a.text}.cumsum()", lambda v: f(v).cumsum()),
            (f"where(mask, {a.text}, {value})", lambda v: np.where(mask, f(v), value)),
            (f"put({a.text}, mask, {value})", lambda v: put(f(v), mask, value)),
            (f"put({a.text}, {order[0]}, {value})", lambda v: put(f(v), order[0], value)),
            (f"diff({a.text}, prepend)", lambda v: np.diff(f(v), axis=0, prepend=f(v)[:1])),
            (f"sum({a.text}, float)", lambda v: np.sum(f(v), dtype=float)),
            (f"resize({a.text}, 4)", lambda v: np.resize(f(v), 4)),
        ]

    def binary(self, a: _Part, depth: int) -> _Part:
        """An operation with another operand, whose shape is made to go with it."""
        shape, f = np.shape(a.value), a.function
        kind = self.pick(["add", "sub", "mul", "rsub", "matmul", "stack"])
        if kind == "matmul" and shape:
            n = int(self.rng.integers(1, 6))
            b = self.part(self.pick([(shape[-1],), (shape[-1], n)]), depth - 1, a.encrypted)
            g = b.function
            return self.made(f"({a.text} @ {b.text})", lambda v: f(v) @ g(v), a, b)
        if kind == "stack" and len(shape) == 2:
            b = self.part((int(self.rng.integers(1, 4)), shape[1]), depth - 1, a.encrypted)
            g = b.function
            return self.made(f"vstack([{a.text}, {b.text}])", lambda v: np.vstack([f(v), g(v)]), a, b)
        wanted = tuple(1 if self.rng.random() < 0.25 else n for n in shape)
        wanted = wanted[int(self.rng.integers(len(shape) + 1)) :] if self.rng.random() < 0.5 else wanted
        if len(wanted) < 2 and self.rng.random() < 0.2:
            wanted = (int(self.rng.integers(1, 5)), *(wanted or (1,)))
            wanted = wanted if len(shape) < 2 else wanted[-1:]
        b = self.part(wanted, depth - 1, a.encrypted)
        g = b.function
        signs = {
            "add": ("+", lambda v: f(v) + g(v)),
            "sub": ("-", lambda v: f(v) - g(v)),
            "rsub": ("-", lambda v: g(v) - f(v)),
            "mul": ("*", lambda v: f(v) * g(v)),
        }
        sign, function = signs[kind if kind in signs else "mul"]
        left, right = (b, a) if kind == "rsub" else (a, b)
        return self.made(f"({left.text} {sign} {right.text})", function, a, b)

    def made(self, text: str, function: Function, a: _Part, b: _Part) -> _Part:
        return _Part(text, function, function(self.inputs), a.encrypted or b.encrypted)

    def part(self, shape: tuple[int, ...], depth: int, beside: bool) -> _Part:
        """Something of a shape; plain only beside what is encrypted."""
        if shape == ():
            number = round(float(self.rng.uniform(-2, 2)), 2)
            return _Part(str(number), lambda v: number, number, False)
        if depth <= 0 or self.rng.random() < 0.5:
            return self.leaf(shape, plain=beside and self.rng.random() < 0.4)
        f = (inner := self.leaf(shape, plain=False)).function
        return _Part(f"({inner.text} * {inner.text})", lambda v: f(v) * f(v), f(self.inputs), True)


def random_case(seed: int, depth: int = 4) -> Case:
    """The expression of a seed: at most `depth` operations deep, of matrices up to 5×5."""
    rng = np.random.default_rng(seed)
    while True:
        growing = _Growing(rng)
        sides = tuple(int(n) for n in rng.integers(1, 6, size=int(rng.integers(1, 3))))
        part = growing.leaf(sides, plain=False)
        for level in range(int(rng.integers(1, depth + 1)), 0, -1):
            part = growing.unary(part) if rng.random() < 0.5 else growing.binary(part, level - 1)
        value = np.asarray(part.value)
        if (
            part.encrypted
            and value.size <= 64
            and np.abs(value).max() <= LARGEST
            and part.text not in growing.inputs
        ):
            return Case(part.text, part.function, growing.inputs, frozenset(growing.plain))
