"""Who encrypts, who computes, who decrypts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._array import COLUMN, MATRIX, Floats, plain
from ._errors import ShapeError, UnsupportedError
from ._integers import IntegerClient, IntegerPlan
from ._keys import KeyedServer, SecretHolder
from ._matrix import EncryptedMatrix
from ._plan import Plan
from ._progress import progress
from ._release import wanted

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Client", "PublicClient", "Server"]


class Server(KeyedServer[_core.Server]):
    """Computes by a plan. It holds evaluation keys and nothing secret.

    It travels by `to_bytes` and `from_bytes`, and pickles for your own processes.
    """

    def __init__(self, core: _core.Server, plan: Plan) -> None:
        self._core, self._plan = core, plan

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._plan

    @property
    def counters(self) -> dict[str, int]:
        """Operations done so far: add, rot, cmult, mult, key_switches."""
        return self._core.counters()

    def bind(self, x: EncryptedMatrix) -> EncryptedMatrix:
        """The same matrix, computed with by this server."""
        return EncryptedMatrix(x._core, x._plan, self, x._dropped)

    def plain(self, x: Any, name: str) -> EncryptedMatrix:
        """A matrix that the plan gives to the server unencrypted, ready to compute with."""
        values = plain(x)
        vector = values.ndim == 1
        core = self._plain(name, values.reshape(-1, 1) if vector else values)
        return EncryptedMatrix(core, self._plan, self, COLUMN if vector else MATRIX)

    def _plain(self, name: str, values: Floats) -> _core.Encrypted:
        return self._core.plain(name, members(values))

    @classmethod
    def from_bytes(cls, plan: Plan, data: bytes, threads: int = 0) -> Server:
        """A server from evaluation keys, on `threads` threads (0: one for each processor)."""
        return cls(_core.Server.from_bytes(plan._core, data, threads), plan)

    def __repr__(self) -> str:
        megabytes = self.key_bytes / 1e6
        return (
            f"<sudare server {self.plan.method} {self.threads} threads, keys {megabytes:.1f} MB, no secret>"
        )

    def __reduce__(self) -> tuple[Callable[..., Server], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return Server.from_bytes, (self._plan, self.to_bytes(), self.threads)


class Client(SecretHolder[_core.Client]):
    """Owns the secret key: encrypts the inputs of a plan and decrypts its result.

    `threads` work for it and for its server (0: one for each processor).
    """

    _again = "Client.from_secret_bytes(plan, data)"

    def __new__(cls, plan: Plan | IntegerPlan | None = None, **options: Any) -> Self:
        if isinstance(plan, IntegerPlan):
            # A plan of integers has a client of its own, which `IntegerPlan.client` names.
            return IntegerClient(plan, **options)  # type: ignore[return-value]
        return super().__new__(cls)

    def __init__(self, plan: Plan, *, threads: int = 0) -> None:
        self._setup(_core.Client(plan._core, threads), plan, threads)

    def _setup(self, core: _core.Client, plan: Plan, threads: int) -> None:
        self._core, self._plan, self._threads = core, plan, threads
        self._server: Server | None = None

    @classmethod
    def from_secret_bytes(cls, plan: Plan, data: bytes, *, threads: int = 0) -> Client:
        """A client from the secret key that `secret_bytes` gave."""
        client = cls.__new__(cls)
        client._setup(_core.Client.from_secret_bytes(plan._core, data, threads), plan, threads)
        return client

    def public_bytes(self) -> bytes:
        """A public key: with `PublicClient`, others encrypt for this client."""
        return self._core.public_bytes()

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._plan

    def server(self) -> Server:
        """The server for this client's data, made once: evaluation keys only."""
        if self._server is None:
            with progress("making keys") as report:
                self._server = Server(self._core.server(self._threads, report), self._plan)
        return self._server

    def encrypt(self, x: Any, name: str) -> EncryptedMatrix:
        """Encrypt an input of the plan; of a batch, all members at once along the first axis."""
        core, dropped = _encrypt(self._core, x, name)
        return EncryptedMatrix(core, self._plan, self._server, dropped)

    @property
    def releases_left(self) -> int:
        """Results that may still be shown under this key, of those that the plan declares."""
        return self._core.releases_left

    def decrypt(self, x: EncryptedMatrix, *, release: bool = False) -> Floats:
        """Decrypt the result of the plan.

        Without `release` the result is for the owner's eyes: whoever sees it *and* the ciphertext
        can compute the secret key. With it, noise hides that, and the result is within `plan.error`
        all the same; the plan has to declare it. The count of releases is in what `secret_bytes`
        gives: save it again after each.
        """
        if not isinstance(x, EncryptedMatrix):
            raise UnsupportedError(f"an encrypted matrix is decrypted, not {type(x).__name__}")
        return self._core.decrypt(x._core, wanted(release)).reshape(x.shape)

    def __repr__(self) -> str:
        return f"<sudare client {self._plan.method}, secret key hidden>"


class PublicClient:
    """Encrypts for a client under its public key, and can do no more."""

    def __init__(self, plan: Plan, public: bytes, *, threads: int = 0) -> None:
        self._core, self._plan = _core.PublicClient(plan._core, public, threads), plan

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._plan

    def encrypt(self, x: Any, name: str) -> EncryptedMatrix:
        """Encrypt an input of the plan."""
        core, dropped = _encrypt(self._core, x, name)
        return EncryptedMatrix(core, self._plan, None, dropped)

    def __repr__(self) -> str:
        return f"<sudare public client {self._plan.method}>"


def _encrypt(
    core: _core.Client | _core.PublicClient, x: Any, name: str
) -> tuple[_core.Encrypted, tuple[int, ...]]:
    if isinstance(x, EncryptedMatrix):
        raise UnsupportedError("this matrix is encrypted already")
    values = plain(x)
    vector = values.ndim == 1
    with progress(f"encrypting {name}") as report:
        made = core.encrypt(name, members(values.reshape(-1, 1) if vector else values), report)
    return made, COLUMN if vector else MATRIX


def members(values: Floats) -> Floats:
    """A matrix or a batch of them with the axes batch, row, column."""
    if values.ndim not in (2, 3):
        raise ShapeError(f"a matrix or a batch of matrices is wanted, not an array of shape {values.shape}")
    return np.ascontiguousarray(values.reshape((-1, *values.shape[-2:])))
