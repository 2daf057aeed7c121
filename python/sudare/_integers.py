"""Exact products of encrypted integer matrices."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._array import Shape
from ._errors import InputError, PlanError, ShapeError, UnsupportedError
from ._keys import SecretHolder
from ._opaque import Opaque
from ._spec import Spec
from ._trace import trace
from ._values import array

__all__ = ["EncryptedIntegers", "IntegerClient", "IntegerPlan", "IntegerServer"]

Integers = NDArray[np.int64]


class IntegerPlan:
    """A plan for `A @ B` of integer matrices, never rounded. Made by `sudare.plan`; nothing in it is secret.

    It travels as JSON (`to_json`, `from_json`, `save`, `load`), and pickles for your own processes.
    """

    def __init__(self, core: _core.IntegerPlan, shapes: Mapping[str, Shape]) -> None:
        self._core, self._shapes = core, dict(shapes)

    @classmethod
    def from_json(cls, text: str) -> IntegerPlan:
        """Read a plan; everything in it is worked out and checked again."""
        try:
            loaded = json.loads(text)
            left, right = ((str(name), tuple(map(int, shape))) for name, shape in loaded["inputs"].items())
            plan = json.dumps(loaded["plan"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PlanError(f"this is no plan of an integer product: {error}") from None
        core = _core.IntegerPlan.from_json(plan)
        m, k, n = core.sides
        row, column = [(k,)][: m == 1], [(k,)][: n == 1]
        if left[1] not in [(m, k), *row] or right[1] not in [(k, n), *column]:
            raise PlanError(f"inputs {left} and {right} are not those of a product of sides {core.sides}")
        return cls(core, dict((left, right)))

    @classmethod
    def load(cls, path: str | Path) -> IntegerPlan:
        """Read a plan file."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps({"inputs": self._shapes, "plan": json.loads(self._core.to_json())})

    def save(self, path: str | Path) -> None:
        """Write a plan file."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    def client(self, *, threads: int = 0) -> IntegerClient:
        """A client with a new secret key."""
        return IntegerClient(self, threads=threads)

    @property
    def inputs(self) -> dict[str, Spec]:
        """The inputs by name."""
        bounds = zip(self._shapes.items(), self._core.bounds, strict=True)
        return {name: Spec(shape, bound, integer=True) for (name, shape), bound in bounds}

    @property
    def shape(self) -> Shape:
        """The shape of the result, as NumPy has it for `A @ B`."""
        left, right = self._shapes.values()
        return left[:-1] + right[1:]

    def __str__(self) -> str:
        return str(self._core)

    def __repr__(self) -> str:
        m, k, n = self._core.sides
        return f"<sudare integer plan {m}×{k} @ {k}×{n}, exact, {self._core.security}-bit security>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntegerPlan) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Callable[[str], IntegerPlan], tuple[str]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return IntegerPlan.from_json, (self.to_json(),)


def plan_integers(function: Callable[..., Any], specs: Mapping[str, Spec], security: int) -> IntegerPlan:
    """The plan of a function that is one matrix product of its two inputs."""
    if not all(isinstance(spec, Spec) and spec.integer for spec in specs.values()):
        raise PlanError("integer and real matrices do not mix; describe all inputs with dtype=int, or none")
    expression = json.loads(trace(function, specs))
    output = expression["nodes"][expression["output"]]
    nodes = expression["nodes"]
    shapes = [spec.shape for spec in specs.values()]

    def factor(node: dict[str, Any], left: bool) -> int | None:
        """The input that a factor is. A vector on the left is a row: its column, turned."""
        if left and node["op"] == "transpose":
            turned = nodes[node["of"]]
            vector = turned["op"] == "input" and len(shapes[turned["input"]]) == 1
            node = turned if vector else node
        return node["input"] if node["op"] == "input" else None

    product = output["op"] == "matmul"
    factors = [factor(nodes[output[side]], side == "left") for side in ("left", "right")] if product else []
    inputs = [i for i in factors if i is not None]
    if len(inputs) != 2 or inputs[0] == inputs[1] or len(expression["inputs"]) != 2:
        raise PlanError(
            "an exact plan computes A @ B for two different inputs; transpose or extend the matrices before "
            "encryption, and give a matrix twice to multiply it with itself"
        )
    left, right = (expression["inputs"][i] for i in inputs)
    if left["plain"] or right["plain"]:
        raise PlanError("both inputs of an exact product are encrypted; plain ones are not supported")
    for entry in (left, right):
        if entry["max_abs"] != int(entry["max_abs"]):
            raise InputError(f"max_abs of integers is an integer, not {entry['max_abs']!r}")
    rows = 1 if len(shapes[inputs[0]]) == 1 else left["rows"]
    sides = (rows, right["rows"], right["cols"])
    core = _core.IntegerPlan.make(sides, int(left["max_abs"]), int(right["max_abs"]), security)
    first, second = inputs
    return IntegerPlan(core, {left["name"]: shapes[first], right["name"]: shapes[second]})


class EncryptedIntegers(Opaque):
    """An integer matrix that only its client can read.

    `@` multiplies; no key is needed for that. It travels by `to_bytes` and `from_bytes`, and pickles for
    your own processes.
    """

    def __init__(self, core: _core.EncryptedIntegers, plan: IntegerPlan) -> None:
        self._core, self._plan = core, plan

    @property
    def shape(self) -> Shape:
        """The shape, as NumPy has it."""
        if self._core.operand == "output":
            return self._plan.shape
        left, right = self._plan._shapes.values()
        return left if self._core.operand == "left" else right

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._core.nbytes

    def __matmul__(self, other: EncryptedIntegers) -> EncryptedIntegers:
        if not isinstance(other, EncryptedIntegers):
            return NotImplemented
        return IntegerServer(self._plan).multiply(self, other)

    def to_bytes(self) -> bytes:
        """Its bytes on the wire."""
        return self._core.to_bytes()

    @classmethod
    def from_bytes(cls, plan: IntegerPlan, data: bytes) -> EncryptedIntegers:
        """A matrix of a plan from its bytes."""
        return cls(_core.EncryptedIntegers.from_bytes(plan._core, data), plan)

    def __repr__(self) -> str:
        names = dict(zip(("left", "right"), self._plan.inputs, strict=True))
        what = names.get(self._core.operand, "result")
        return f"<sudare bgv {self.shape} int64 exact, {what}, {self.nbytes / 1e6:.1f} MB>"

    def __reduce__(self) -> tuple[Callable[..., EncryptedIntegers], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return EncryptedIntegers.from_bytes, (self._plan, self.to_bytes())


class IntegerServer:
    """Multiplies encrypted integer matrices. It holds no key at all."""

    def __init__(self, plan: IntegerPlan, threads: int = 0) -> None:
        self._plan, self._core, self._threads = plan, _core.IntegerServer(plan._core, threads), threads

    @property
    def plan(self) -> IntegerPlan:
        """The plan."""
        return self._plan

    def multiply(self, left: EncryptedIntegers, right: EncryptedIntegers) -> EncryptedIntegers:
        """The product of the plan's two inputs."""
        if not (isinstance(left, EncryptedIntegers) and isinstance(right, EncryptedIntegers)):
            raise UnsupportedError("an exact product takes two encrypted integer matrices")
        if left._core.shape[1] != right._core.shape[0]:
            raise ShapeError(f"shapes {left.shape} and {right.shape} do not multiply")
        return EncryptedIntegers(self._core.multiply(left._core, right._core), self._plan)

    def __repr__(self) -> str:
        return "<sudare integer server, no keys>"

    def __reduce__(self) -> tuple[Callable[..., IntegerServer], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return IntegerServer, (self._plan, self._threads)


class IntegerClient(SecretHolder[_core.IntegerClient]):
    """Owns the secret key: encrypts the inputs of an integer plan and decrypts its result exactly.

    `threads` work for it (0: one for each processor). `sudare.Client(plan)` makes one.
    """

    _again = "IntegerClient.from_secret_bytes(plan, data)"

    def __init__(self, plan: IntegerPlan, *, threads: int = 0) -> None:
        self._setup(_core.IntegerClient(plan._core, threads), plan, threads)

    def _setup(self, core: _core.IntegerClient, plan: IntegerPlan, threads: int) -> None:
        self._core, self._plan, self._threads = core, plan, threads

    @classmethod
    def from_secret_bytes(cls, plan: IntegerPlan, data: bytes, *, threads: int = 0) -> IntegerClient:
        """A client from the secret key that `secret_bytes` gave."""
        client = cls.__new__(cls)
        client._setup(_core.IntegerClient.from_secret_bytes(plan._core, data, threads), plan, threads)
        return client

    @property
    def plan(self) -> IntegerPlan:
        """The plan."""
        return self._plan

    def server(self) -> IntegerServer:
        """A server for this plan; it needs no keys."""
        return IntegerServer(self._plan, self._threads)

    def encrypt(self, x: Any, name: str) -> EncryptedIntegers:
        """Encrypt an input of the plan: an array of integers of its shape and within its bound."""
        names = list(self._plan.inputs)
        if name not in names:
            raise PlanError(f"the plan has the inputs {', '.join(names)}, not {name}")
        values = array(x)
        if values.dtype.kind not in "biu":
            raise UnsupportedError(f"integers are wanted, not an array of {values.dtype}; nothing is rounded")
        if values.dtype.kind == "u" and values.size and int(values.max()) > np.iinfo(np.int64).max:
            raise InputError("a value does not fit 64 bits with a sign")
        left, shape = name == names[0], self._plan.inputs[name].shape
        if values.shape != shape:
            raise ShapeError(f"{name} has shape {shape} in the plan, not {values.shape}")
        # A vector is a row on the left and a column on the right.
        rows = values if values.ndim == 2 else values.reshape((1, -1) if left else (-1, 1))
        core = self._core.encrypt(left, np.ascontiguousarray(rows, dtype=np.int64))
        return EncryptedIntegers(core, self._plan)

    def decrypt(self, x: EncryptedIntegers) -> NDArray[Any]:
        """Decrypt the result: int64, or Python integers where 64 bits may not hold the planned bound."""
        if not isinstance(x, EncryptedIntegers):
            raise UnsupportedError(f"an encrypted integer matrix is decrypted, not {type(x).__name__}")
        if self._plan._core.result_bound < 2**63:
            return self._core.decrypt(x._core).reshape(x.shape)
        return np.array(self._core.decrypt_wide(x._core), dtype=object).reshape(x.shape)

    def __repr__(self) -> str:
        return f"<sudare integer client {self._plan.shape}, secret key hidden>"
