"""Encrypted matrices and what computes on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ._array import ArrayOperators, Floats, Shape
from ._core import Encrypted
from ._errors import PlanError, UnsupportedError
from ._plan import Plan
from ._trace import NAMES, constant_name

if TYPE_CHECKING:
    from ._session import Server

__all__ = ["EncryptedMatrix"]


@dataclass(frozen=True)
class PlainOperand:
    """A matrix that the server sees, before it is known which input of the plan it is."""

    values: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape[-2], self.values.shape[-1]

    @property
    def batch(self) -> int:
        """Matrices in it."""
        return self.values.shape[0] if self.values.ndim == 3 else 1


Operand: TypeAlias = "Encrypted | PlainOperand"


class Computation:
    """The operators on encrypted operands, done by a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def _one(self, operand: Operand) -> Encrypted:
        if isinstance(operand, PlainOperand):
            raise PlanError("an operation on plain matrices alone is done before they are given here")
        return operand

    def _both(self, op: str, left: Operand, right: Operand) -> tuple[Encrypted, Encrypted]:
        """Operands of an operation, a plain one in the form that the plan has for it."""
        if isinstance(left, PlainOperand):
            other = self._one(right)
            return self._planned(op, left, other, "left", "right"), other
        if isinstance(right, PlainOperand):
            return left, self._planned(op, right, left, "right", "left")
        return left, right

    def _planned(self, op: str, plain: PlainOperand, other: Encrypted, side: str, across: str) -> Encrypted:
        """Finds the plain input that the plan combines with `other` here."""
        expression = self._server.plan._expression
        nodes, inputs = expression["nodes"], expression["inputs"]
        sides = [(side, across)] if op in ("matmul", "sub") else [(side, across), (across, side)]
        names = set()
        for node in nodes:
            for s, a in sides:
                if node["op"] == op and node[a] == other.node and nodes[node[s]]["op"] == "input":
                    entry = inputs[nodes[node[s]]["input"]]
                    if entry.get("plain") and (entry["rows"], entry["cols"]) == plain.shape:
                        names.add(entry["name"])
        own = constant_name(plain.values)
        if own in names:
            names = {own}
        # A matrix that the planned function brought along is known by its contents.
        names -= {n for n in names if n.startswith("plain ") and n != own}
        if len(names) == 1:
            return self._server._plain(names.pop(), plain.values)
        if names:
            found = ", ".join(sorted(names))
            raise PlanError(f"this plain matrix could be {found}; say which by server.plain(matrix, name)")
        raise PlanError(
            f"the plan has no plain {plain.shape} matrix in this place; "
            "plan with sudare.spec(…, plain=True), or encrypt the matrix"
        )

    def matmul(self, left: Operand, right: Operand) -> Encrypted:
        """The matrix product."""
        return self._server._core.matmul(*self._both("matmul", left, right))

    def elementwise(self, operation: str, left: Operand, right: Operand) -> Encrypted:
        """A sum, difference or product, element by element."""
        done: Callable[..., Encrypted] = getattr(self._server._core, operation)
        return done(*self._both(NAMES[operation], left, right))

    def negative(self, operand: Operand) -> Encrypted:
        """The negative."""
        return self._server._core.negative(self._one(operand))

    def scale(self, operand: Operand, factor: float) -> Encrypted:
        """The multiple by a number."""
        return self._server._core.scale(self._one(operand), factor)

    def shift(self, operand: Operand, number: float) -> Encrypted:
        """A number added to every element."""
        return self._server._core.shift(self._one(operand), number)

    def transpose(self, operand: Operand) -> Operand:
        """The transpose."""
        if isinstance(operand, PlainOperand):
            return PlainOperand(operand.values.swapaxes(-1, -2))
        return self._server._core.transpose(operand)

    def sum(self, operand: Operand, axis: int) -> Encrypted:
        """The sum over an axis."""
        return self._server._core.sum(self._one(operand), axis)

    def lift(self, values: Floats) -> PlainOperand:
        """A plain matrix as an operand."""
        return PlainOperand(values)


class EncryptedArray(ArrayOperators):
    """What every encrypted matrix shows of itself."""

    @property
    def level(self) -> int:
        """Multiplications in a row that are left."""
        level: int = self._core.level
        return level

    @property
    def max_abs(self) -> float:
        """Bound on the absolute values of its elements; public."""
        bound: float = self._core.max_abs
        return bound

    @property
    def error(self) -> float | None:
        """Bound on the error of its elements; `None` for an input of a plan that decrypts results only."""
        bound: float | None = self._core.error
        return bound

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        size: int = self._core.nbytes
        return size

    def __repr__(self) -> str:
        text, core = repr(self._core), (*self._batch, *self._core.shape)
        return text.replace(str(core), str(self.shape), 1) if self._dropped else text


class EncryptedMatrix(EncryptedArray):
    """A matrix that nobody can read without the client.

    Made by `Client.encrypt`, computed with by `@ + - *`, `.T`, `.sum(axis)` and NumPy's functions
    of these, as its plan says, and read by `Client.decrypt`. It travels by `to_bytes` and `from_bytes`,
    and pickles for your own processes; what was read computes again with `server.bind(x)`, or
    together with a matrix that is bound.
    """

    _core: Encrypted

    def __init__(self, core: Encrypted, plan: Plan, server: Server | None, dropped: Shape = ()) -> None:
        self._core, self._plan, self._server, self._dropped = core, plan, server, dropped

    @property
    def _do(self) -> Computation:
        if self._server is None:
            raise UnsupportedError(
                "this matrix is bound to no server; make it by client.server() before encrypting, "
                "or bind it: x = server.bind(x)"
            )
        return Computation(self._server)

    def _wrap(self, core: Any, dropped: Shape) -> EncryptedMatrix:
        return EncryptedMatrix(core, self._plan, self._server, dropped)

    def _adopt(self, other: Any) -> EncryptedMatrix:
        if self._server is None and isinstance(other, EncryptedMatrix) and other._server is not None:
            return EncryptedMatrix(self._core, self._plan, other._server, self._dropped)
        return self

    @property
    def plan(self) -> Plan:
        """The plan that it belongs to."""
        return self._plan

    def to_bytes(self) -> bytes:
        """Its bytes on the wire; fresh ones take half their size."""
        return self._core.to_bytes()

    @classmethod
    def from_bytes(cls, plan: Plan, data: bytes) -> EncryptedMatrix:
        """Read a matrix of a plan, a vector as a matrix of one column. Every size and value is checked."""
        return cls(Encrypted.from_bytes(plan._core, data), plan, None)

    def __reduce__(self) -> tuple[Callable[..., EncryptedMatrix], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return _unpickle, (self._plan, self.to_bytes(), self._dropped)


def _unpickle(plan: Plan, data: bytes, dropped: Shape) -> EncryptedMatrix:
    return EncryptedMatrix(Encrypted.from_bytes(plan._core, data), plan, None, dropped)
