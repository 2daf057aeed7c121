"""What travels between the owner of a fit and a server: rows and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._errors import FormatError
from .._files import Source, Travels, kind, octets
from .._matrix import Encrypted
from ._layout import Plan, gram, of_masked

if TYPE_CHECKING:
    from .._session import Server


class _Values(Travels):
    """Encrypted matrices of a plan."""

    def __init__(self, plan: Plan, parts: Sequence[Encrypted]) -> None:
        self._plan, self._parts = plan, tuple(parts)

    @property
    def plan(self) -> Plan:
        """The plan of the fit."""
        return self._plan

    @property
    def parts(self) -> tuple[Encrypted, ...]:
        """The encrypted matrices, which are those of `plan.product`."""
        return self._parts

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(x.nbytes for x in self._parts)

    def to_bytes(self) -> bytes:
        """What travels: one container after another."""
        return b"".join(x.to_bytes() for x in self._parts)

    def _saved(self) -> bytes:
        return self.to_bytes()

    @staticmethod
    def _split(plan: Plan, data: Source, count: int) -> list[Encrypted]:
        rest = memoryview(octets(data))
        found: list[Encrypted] = []
        for _ in range(count):
            size = kind(bytes(rest)).nbytes
            found.append(Encrypted.from_bytes(plan.product, bytes(rest[:size])))
            rest = rest[size:]
        if len(rest):
            raise FormatError(f"there are {len(rest)} bytes after {count} matrices; copy it again")
        return found


class Rows(_Values):
    """Encrypted rows with their targets: what `learn.Client.encrypt` gives and estimators fit on."""

    @classmethod
    def from_bytes(cls, plan: Plan, data: Source, server: Server | None = None) -> Rows:
        """Read rows: `data` is bytes-like, a path or an open binary file. `server` computes with them.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for the rows of another plan.
        """
        found = cls(plan, cls._split(plan, data, len(plan.product.inputs)))
        return found if server is None else found.bind(server)

    def bind(self, server: Server) -> Rows:
        """The same rows, computed with by this server."""
        return Rows(self._plan, [server.bind(x) for x in self._parts])

    def moments(self) -> Answer:
        """The encrypted moments, which serve every estimator of the plan's kind.

        Raises `UnsupportedError` for rows that are bound to no server, `KeyMismatchError` for those of
        another key.
        """
        return Answer(self._plan, [(of_masked if len(self._parts) > 1 else gram)(*self._parts)])

    def __repr__(self) -> str:
        return f"<sudare rows of a fit, {self._plan.shape}, {self.nbytes / 1e6:.1f} MB>"


class Answer(_Values):
    """Encrypted moments: what a server makes of rows, and their owner decrypts."""

    @classmethod
    def from_bytes(cls, plan: Plan, data: Source) -> Answer:
        """Read an answer: `data` is bytes-like, a path or an open binary file.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for the answer of another plan.
        """
        return cls(plan, cls._split(plan, data, 1))

    def __repr__(self) -> str:
        return f"<sudare moments of a fit, encrypted, {self.nbytes / 1e6:.1f} MB>"
