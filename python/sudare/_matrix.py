"""Encrypted matrices and what computes on them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from . import _html, _tables
from ._array import COLUMN, MATRIX, ArrayOperators, Floats, Lines, Operation, Shape
from ._core import Encrypted as Core
from ._core import infer
from ._devices import CPU, Device, named
from ._errors import PlanError, PrecisionError, ShapeError, UnsupportedError
from ._files import Source, Travels, octets
from ._keys import Home
from ._plan import Plan
from ._polynomial import Interval, inside, polynomial
from ._progress import clock, forecast
from ._trace import constant_name
from ._values import real

if TYPE_CHECKING:
    from ._session import Server

__all__ = ["Encrypted"]


@dataclass(frozen=True)
class PlainOperand:
    """A matrix that the server sees, before it is known which input of the plan it is.

    What is done to it alone is done in NumPy, as it was when the plan was made.
    """

    values: NDArray[Any]
    source: str = ""
    known = True

    @property
    def sought(self) -> tuple[tuple[int, int], str, str]:
        """Its shape, what its giver calls it, and the name of its contents."""
        contents = constant_name(self.values) if self.values.dtype != object else ""
        return self.shape, self.source, contents

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape[-2], self.values.shape[-1]

    @property
    def batch(self) -> int:
        """Matrices in it."""
        return self.values.shape[0] if self.values.ndim == 3 else 1


@dataclass(frozen=True)
class Unused:
    """A value that the plan has not, since its result does not need it: only its shape is known."""

    shape: tuple[int, int]
    batch: int
    refusal: PlanError

    def __getattr__(self, name: str) -> NoReturn:
        raise self.refusal if not name.startswith("_") else AttributeError(name)


@dataclass(frozen=True)
class Blocks:
    """Rows of any number: values of a plan, each a block of its rows, the last filled up."""

    cores: tuple[Core, ...]
    rows: int

    @classmethod
    def of(cls, make: Callable[..., Any], *operands: Any) -> Any:
        """What is made of each block, with what all blocks share.

        Raises `ShapeError` for operands of different numbers of rows.
        """
        several = [x for x in operands if isinstance(x, Blocks)]
        if len({x.rows for x in several}) != 1:
            raise ShapeError(
                f"rows go together one by one, and the tables have {sorted({x.rows for x in several})} "
                "rows; give tables of one length"
            )
        each = zip(
            *(x.cores if isinstance(x, Blocks) else [x] * len(several[0].cores) for x in operands),
            strict=True,
        )
        made = tuple(make(*block) for block in each)
        # What the plan does not need has no value in any block.
        return made[0] if isinstance(made[0], Unused) else cls(made, several[0].rows)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.cores[0], name)

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return sum(core.nbytes for core in self.cores)

    def to_host(self) -> Blocks:
        """In memory."""
        return Blocks(tuple(core.to_host() for core in self.cores), self.rows)

    def to_bytes(self) -> NoReturn:
        """Refused: blocks travel one by one."""
        raise UnsupportedError(
            "rows of any number travel block by block: [part.to_bytes() for part in x.blocks]"
        )

    def __repr__(self) -> str:
        return f"{self.cores[0]!r} and {len(self.cores) - 1} more blocks, {self.rows} rows in all"


Operand: TypeAlias = "Core | PlainOperand | Unused | Blocks"


class Session:
    """A server as the place of operations."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def apply(self, operation: Operation, *operands: Operand) -> Operand:
        """An operation; on plain matrices alone it is done in NumPy."""
        if any(isinstance(x, Blocks) for x in operands):
            return Blocks.of(functools.partial(self.apply, operation), *operands)  # type: ignore[no-any-return]
        known = [x for x in operands if isinstance(x, PlainOperand)]
        if len(known) == len(operands):
            source = next((x.source for x in known if x.source), "")
            return PlainOperand(of_plain(operation, *(x.values for x in known)), source)
        plan, said = self._server.plan, json.dumps(operation)
        if plan is None:
            try:
                return self._applied(operation, said, operands)
            except PrecisionError as refusal:
                reason = str(refusal).split("; rescale")[0]
                raise PrecisionError(
                    f"{reason}; a context takes bounds as they are given: give a smaller one, "
                    "x.bounded(max_abs), encrypt smaller numbers, or take a plan, which has room for its "
                    "values"
                ) from None
        if said not in plan._unused:
            return self._applied(operation, said, operands)
        try:
            return self._applied(operation, said, operands)
        except PlanError as refusal:
            told = [(*x.shape, 1.0, None) for x in operands]
            rows, cols, _, _ = infer(said, told)
            return Unused((rows, cols), max(x.batch for x in operands), refusal)

    def _applied(self, operation: Operation, said: str, operands: tuple[Operand, ...]) -> Core:
        core, plan = self._server._core, self._server.plan
        for x in operands:
            if isinstance(x, Unused):
                raise x.refusal
        known = any(isinstance(x, PlainOperand) for x in operands)
        values = self._placed(said, operands) if known else cast("list[Core]", list(operands))
        if operation["op"] != "matmul":
            return core.apply(said, values)
        seconds = None if plan is None else plan.seconds
        if seconds is not None:
            forecast("this product, with all that the plan computes,", seconds)
        with clock("multiplying", seconds):
            return core.apply(said, values)

    def _placed(self, said: str, operands: tuple[Any, ...]) -> list[Core]:
        """Operands of an operation, a plain one in the form that the plan has for it."""
        sought = [x.sought if isinstance(x, PlainOperand) else x.node for x in operands]
        names = self._server._planned._core.place(said, sought)
        return [
            self._server._plain(cast("str", name), x.values) if isinstance(x, PlainOperand) else x
            for name, x in zip(names, operands, strict=True)
        ]

    def by_elements(self, length: int) -> bool:
        """Whether the plan has products with a plain vector of a length as those of each element."""
        plan = self._server.plan
        return plan is not None and plan._by_elements(length)

    def lift(self, values: Floats) -> Operand:
        """A plain matrix as an operand: an input of the plan, or in a context any."""
        return PlainOperand(values) if self._server.plan else self._server._core.lift(members(values))


class Encrypted(ArrayOperators, Travels):
    """A matrix, vector or table, or a result, that nobody reads without the client or context that made it.

    Made by `Client.encrypt` or `Context.encrypt`, computed with by `@ + - *`, `.T`, `.sum(axis)`, slices
    and NumPy's functions of these, as its plan says, and read by `decrypt`. The values of a plan travel by
    `save` and `sudare.load`, or `to_bytes` and `from_bytes`, and pickle for your own processes; what was
    read computes again with `server.bind(x)`, or together with a matrix that is bound.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> x = ctx.encrypt([[1, 2], [3, 4]])
    >>> x.shape, ctx.decrypt(x[:, 1] + 1).round(3).tolist()
    ((2, 2), [3.0, 5.0])
    """

    _core: Core

    def __init__(
        self, core: Core, plan: Plan | None, home: Server | Home[Server] | None, dropped: Shape = ()
    ) -> None:
        self._core, self._plan, self._dropped = core, plan, dropped
        self._home: Home[Server] = home if isinstance(home, Home) else Home(home)

    @property
    def _server(self) -> Server | None:
        """What computes with it, if anything does yet."""
        return self._home.server

    @property
    def _place(self) -> Session:
        if self._server is None and self._plan is not None and self._plan._core.keyless:
            # It takes no keys: anybody can compute it.
            self._home.server = self._plan.keyless()
        if self._server is None:
            raise UnsupportedError(
                "this matrix is bound to no server; make its client's by client.server(), "
                "or bind it to another: x = server.bind(x)"
            )
        return Session(self._server)

    def _wrap(self, core: Any, dropped: Shape) -> Encrypted:
        return Encrypted(core, self._plan, self._home, dropped)

    def _adopt(self, other: Any) -> Encrypted:
        if self._server is None and isinstance(other, Encrypted) and other._server is not None:
            return Encrypted(self._core, self._plan, other._home, self._dropped)
        return self

    @property
    def _is_table(self) -> bool:
        return self._server is not None and self._server._core.columns is not None

    def _elementwise(self, operation: str, other: Any, *, reflected: bool = False) -> Encrypted:
        if self._is_table:
            return _tables.elementwise(self, operation, other, reflected)
        return super()._elementwise(operation, other, reflected=reflected)

    def _product(self, other: Any, *, reflected: bool = False) -> Encrypted:
        if self._is_table:
            return _tables.product(self, other, reflected)
        return super()._product(other, reflected=reflected)

    @property
    def plan(self) -> Plan | None:
        """The plan that it belongs to; a matrix of a context has none."""
        return self._plan

    @property
    def dtype(self) -> np.dtype[Any]:
        """What decryption gives: of integers that 64 bits may not hold, Python's own."""
        if self._plan is None:
            return np.dtype(np.int64 if self._core.exact else np.float64)
        if not self._plan.exact:
            return np.dtype(np.float64)
        return np.dtype(np.int64 if self._plan._largest(self._core) < 2**63 else object)

    @property
    def blocks(self) -> tuple[Encrypted, ...]:
        """The blocks of rows of any number, each a value of the plan; of another value that alone."""
        cores = self._core.cores if isinstance(self._core, Blocks) else (self._core,)
        return tuple(self._wrap(core, self._dropped) for core in cores)

    @property
    def rows(self) -> int:
        """Rows. Where a plan has any number of them, `shape` is that of a block, as its function sees it.

        Raises `ShapeError` for a number.
        """
        if isinstance(self._core, Blocks):
            return self._core.rows
        return len(self) if self.shape else _no_rows()

    @property
    def level(self) -> int:
        """Multiplications in a row that are left; in a context that bootstraps, to the next refresh."""
        return self._core.level

    @property
    def max_abs(self) -> float:
        """Bound on the absolute values of its elements; public."""
        return self._core.max_abs

    @property
    def error(self) -> float | None:
        """Bound on the error of its elements, in a context in the worst case.

        `None` for an input of a plan that decrypts results only, and for statistics: see `plan.errors`.
        """
        return self._core.error

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._core.nbytes

    @property
    def device(self) -> str:
        """Where it is: "cpu", "cuda:0" and so on."""
        return CPU if isinstance(self._core, PlainOperand) else self._core.device or CPU

    def to(self, device: str | Device) -> Encrypted:
        """The same matrix on "cpu", or on the device of the server that it is bound to.

        Operands are copied when they are used; one that is used often is better brought once.

        Raises `UnsupportedError` for another device than its server's.
        """
        name = named(device)
        server = self._server
        if name != CPU and (server is None or server.device not in (name, f"{name}:0")):
            raise UnsupportedError(
                f"this matrix is bound to no server on {name}; "
                f"what x = server.to({name!r}).bind(x) gives is computed with there"
            )
        if isinstance(self._core, PlainOperand):  # Made for each place where it is used.
            return self
        if name == CPU or server is None:
            return self._wrap(self._core.to_host(), self._dropped)
        bring = server._core.bring
        core = Blocks.of(bring, self._core) if isinstance(self._core, Blocks) else bring(self._core)
        return self._wrap(core, self._dropped)

    def refresh(self, max_abs: float | None = None) -> Encrypted:
        """In a context made with `bootstrap`, the same matrix with the levels of a fresh one.

        The bound that a matrix carries grows with every product. Where you know that its elements are
        smaller, say so with `max_abs`; elements over it come back wrong. A bound over 1 takes a level, and
        bits in proportion.

        Raises `InputError` for a bound that is no number, `UnsupportedError` in a context that does
        not bootstrap.
        """
        bound = None if max_abs is None else real(max_abs, "max_abs")
        server = self._place._server
        return self._wrap(server._core.refresh(self._core, bound), self._dropped)

    def apply(self, function: Any, interval: Interval | None = None, degree: int | None = None) -> Encrypted:
        if self._plan is not None:
            return super().apply(function, interval, degree)
        fitted = polynomial(function, interval, degree, self.max_abs)
        return self._apply(fitted._operation(self.max_abs))

    apply.__doc__ = ArrayOperators.apply.__doc__

    def to_bytes(self) -> bytes:
        """Its bytes on the wire; fresh ones take half their size.

        Raises `UnsupportedError` for a matrix of a context.
        """
        if self._plan is None:
            raise UnsupportedError(
                "a matrix of a context stays in its process; the matrices of a plan travel: sudare.plan"
            )
        return self._core.to_bytes()

    def _saved(self) -> bytes:
        return self.to_bytes()

    @classmethod
    def from_bytes(cls, plan: Plan, data: Source) -> Encrypted:
        """Read a value of a plan, a vector as a matrix of one column. Every size and value is checked.

        `data` is bytes-like, a path or an open binary file.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for the value of another plan.
        """
        return cls(Core.from_bytes(plan._core, octets(data)), plan, None)

    def _repr_html_(self) -> str:
        return _html.encrypted(self)

    def __repr__(self) -> str:
        text, core = repr(self._core), (*self._batch, *self._core.shape)
        return text.replace(str(core), str(self.shape), 1) if self._dropped else text

    def __reduce__(self) -> tuple[Callable[..., Encrypted], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        if self._plan is None:
            raise UnsupportedError(
                "a matrix of a context does not pickle; the matrices of a plan do: sudare.plan"
            )
        return _unpickle, (self._plan, self.to_bytes(), self._dropped)


def _no_rows() -> NoReturn:
    raise ShapeError("a number has no rows; give a table")


def _unpickle(plan: Plan, data: bytes, dropped: Shape) -> Encrypted:
    return Encrypted(Core.from_bytes(plan._core, data), plan, None, dropped)


def of_plain(operation: Operation, x: NDArray[Any], *others: NDArray[Any]) -> NDArray[Any]:
    """What an operation makes of plain matrices, in their own type."""
    op, axis = operation["op"], operation.get("axis", 0) - 2
    by = operation.get("by", 1.0)
    if x.dtype.kind in "iO" and float(by).is_integer():
        by = int(by)
    if op == "take":
        lines = Lines(**operation["lines"])
        moved = np.moveaxis(x, axis, 0)
        out = np.zeros((lines.size, *moved.shape[1:]), x.dtype)
        ends = lines.at + lines.stride * lines.count
        out[lines.at : ends : lines.stride] = moved[lines.start + lines.step * np.arange(lines.count)]
        return np.moveaxis(out, 0, axis)
    if op == "polynomial":
        domain = operation["low"], operation["high"]
        inside(x, domain)
        value: NDArray[Any] = Chebyshev(operation["coefficients"], domain=domain)(x)
        return value
    done: dict[str, Callable[[], Any]] = {
        "matmul": lambda: x @ others[0],
        "add": lambda: x + others[0],
        "sub": lambda: x - others[0],
        "mul": lambda: x * others[0],
        "neg": lambda: -x,
        "scale": lambda: by * x,
        "shift": lambda: by + x,
        "transpose": lambda: x.swapaxes(-1, -2),
        "sum": lambda: x.sum(axis=axis, keepdims=True),
        "repeat": lambda: x.repeat(operation["size"], axis=axis),
        "bounded": lambda: x,
    }
    return cast("NDArray[Any]", done[op]())


def members(values: Floats) -> Floats:
    """A matrix or a batch of them with the axes batch, row, column."""
    if values.ndim not in (2, 3):
        raise ShapeError(f"a matrix or a batch of matrices is needed, not an array of shape {values.shape}")
    return np.ascontiguousarray(values.reshape((-1, *values.shape[-2:])))


def planned(values: Floats, batch: int) -> Floats:
    """A matrix, or the members of a plan's batch."""
    if values.ndim == 3 and batch == 1:
        raise ShapeError(
            f"the plan has one matrix here, not a batch of shape {values.shape}; give the matrix alone"
        )
    return members(values)


def shared(values: Floats, batch: int) -> Floats:
    """A matrix that all members of a batch share, for each of them; a batch as it is."""
    each = planned(values, batch)
    return np.broadcast_to(each, (batch, *each.shape[1:])).copy() if values.ndim == 2 and batch > 1 else each


def rows(values: Any) -> tuple[Any, Shape]:
    """Values with rows and columns, a vector as a column."""
    return (values.reshape(-1, 1), COLUMN) if values.ndim == 1 else (values, MATRIX)
