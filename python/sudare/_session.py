"""Who encrypts, who computes, who decrypts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core, _html
from ._array import Floats, Shape, plain
from ._devices import CPU, Device, kernels, named
from ._errors import InputError, PlanError, UnsupportedError
from ._files import Source, Travels, octets
from ._frames import framed, is_frame, place
from ._index import Index, IndexClient
from ._integers import exactly, packed, whole
from ._keys import Home, KeyedServer, SecretHolder
from ._matrix import Blocks, Encrypted, PlainOperand, Unused, planned, rows, shared
from ._models import ModelClient, ModelPlan
from ._moments import moments, names_of, warn_of_columns
from ._plain import PlainClient, PlainIndex
from ._plan import Plan
from ._progress import clock, progress
from ._release import wanted
from ._stored import PathLike, StoredMatrix, size
from ._tile import EncryptedTile
from ._values import each
from .learn._layout import Plan as FitPlan
from .learn._owner import Client as FitClient

__all__ = ["Client", "PublicClient", "Server"]


class Server(KeyedServer[_core.Server]):
    """Computes by a plan, or in a context without one. It holds evaluation keys and nothing secret.

    It travels by `save` and `sudare.load`, or `to_bytes` and `from_bytes`, and pickles for your own
    processes.

    >>> plan = sd.plan(lambda A, B: A @ B, A=sd.spec((2, 3)), B=sd.spec((3, 2)), error=1e-4)
    >>> client = sd.Client(plan)
    >>> there = sd.Server.from_bytes(plan, client.server().to_bytes())   # on another machine
    >>> x, y = client.encrypt(np.ones((2, 3)), "A"), client.encrypt(np.eye(3, 2), "B")
    >>> client.decrypt(there.bind(x) @ y).shape
    (2, 2)
    """

    def __init__(self, core: _core.Server, plan: Plan | None) -> None:
        self._core, self._plan, self._home = core, plan, Home(self)

    @property
    def plan(self) -> Plan | None:
        """The plan, but for a context's."""
        return self._plan

    @property
    def _planned(self) -> Plan:
        if self._plan is None:
            raise PlanError("a context computes without a plan; ask a session of one")
        return self._plan

    @property
    def counters(self) -> dict[str, int]:
        """Operations done so far: add, rot, cmult, mult, key_switches. Of integers those of refreshes."""
        return self._core.counters()

    @property
    def device(self) -> str:
        """Where it computes: "cpu", "cuda:0" and so on."""
        return self._core.device or CPU

    def to(self, device: str | Device, *, memory: int | str | None = None) -> Server:
        """The same server, computing on a device: "cuda" (the first card), "cuda:1" or "cpu".

        What it computes with is copied there, and what it computes stays there until it is decrypted,
        saved or wanted elsewhere (`C.to("cpu")`). Every word is what the processor computes. `bind` matrices
        to it. Products that are stored, or computed on a cluster, stay with the processor.

        `device` may be one of `devices()` too. `memory`, as 8e9 or "8 GB", is the most that all servers of
        this process may take of the card's memory, where PyTorch or others need the rest.

        Raises `InputError` for what names no device, `SudareError` that says what lacks where there is no
        such card, `PlanError` for a plan that devices do not compute (`plan.on_devices` tells it before there
        are keys): integers, statistics and contexts.
        """
        name = named(device)
        if name == CPU:
            return Server(self._core.to_host(), self._plan)
        ahead, cache = kernels() if name.startswith("cuda") else (None, None)
        limit = None if memory is None else size(memory, "memory")
        return Server(self._core.to_device(name, ahead, cache, limit), self._plan)

    def bind(self, x: Encrypted) -> Encrypted:
        """The same matrix, computed with by this server, which refuses one of another key when it is used."""
        return Encrypted(x._core, x._plan, self._home, x._dropped)

    def plain(self, x: Any, name: str) -> Encrypted:
        """A matrix that the plan gives to the server unencrypted, ready to compute with.

        `x` is anything that NumPy takes for an array of real numbers; of integers, Python's of any size among
        them, for an exact plan.

        Raises `PlanError` for a name that the plan has not plain, `ShapeError` and `InputError` as for
        encryption.
        """
        shaped, dropped = rows(whole(x) if self._planned.exact else plain(x))
        if any(known.startswith(f"{name} (") for known in self._planned.inputs):
            # The plan has it in other forms, which are made as it is used.
            lazy: Any = PlainOperand(shaped, name)
            return Encrypted(lazy, self._plan, self._home, dropped)
        return Encrypted(self._plain(name, shaped), self._plan, self._home, dropped)

    def _plain(self, name: str, values: Any) -> _core.Encrypted:
        each = shared(values, self._planned.batch)
        if self._planned.exact:
            return self._core.plain_integers(name, packed(exactly(each)))
        return self._core.plain(name, each)

    def moments(self, x: Encrypted) -> Encrypted:
        """Means of a table's columns, and under them their covariances, in the columns' own units.

        Raises `PlanError` for a plan of anything else, `KeyMismatchError` for the table of another plan or
        key.
        """
        if not isinstance(x, Encrypted):
            raise UnsupportedError(f"statistics are those of an encrypted table, not of {type(x).__name__}")
        with clock("statistics"):
            return Encrypted(self._core.apply('{"op": "moments"}', [x._core]), self._plan, self._home)

    @classmethod
    def from_bytes(cls, plan: Plan, data: Source, threads: int = 0) -> Server:
        """A server from evaluation keys, on `threads` threads (0: one for each processor).

        `data` is bytes-like, a path or an open binary file.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for keys of other parameters
        than the plan's, `MissingKeyError` where one is missing.
        """
        return cls(_core.Server.from_bytes(plan._core, octets(data), threads), plan)

    @classmethod
    def open(cls, plan: Plan, path: PathLike, *, memory: int | str, threads: int = 0) -> Server:
        """A server whose evaluation keys stay in their file: for keys that do not fit into memory.

        `path` is what `server.save` or `sudare keygen` wrote, and has to stay as it is while the server
        lives. Keys are read and checked when they are asked for, ahead in the order of use; at most `memory`
        bytes (or "2 GB") of them are held beyond what one operation uses at once. Results are bit by bit
        those of keys in memory.

        Raises `FormatError` for a file of anything else or of the wrong length, `KeyMismatchError` for keys
        of other parameters, `MissingKeyError` where one is missing, `PlanError` for a plan that refreshes. A
        damaged key is a `FormatError` of the operation that asks for it.
        """
        core = _core.Server.open(plan._core, os.fspath(path), size(memory, "memory"), threads)
        return cls(core, plan)

    @property
    def key_memory(self) -> int | None:
        """Bytes of keys that are held at most while they stay in their file; None where all are in memory."""
        return self._core.key_memory

    def _repr_html_(self) -> str:
        return _html.server(self)

    def __repr__(self) -> str:
        kind, megabytes = self._plan.method if self._plan else "context", self.key_bytes / 1e6
        where = "" if self.key_memory is None else f" on disk, {self.key_memory / 1e6:.1f} MB held at most"
        keys = f"keys{where}" if where else f"keys {megabytes:.1f} MB"
        device = "" if self.device == CPU else f" on {self.device}"
        return f"<sudare server {kind}{device} {self.threads} threads, {keys}, no secret>"

    def __reduce__(self) -> tuple[Callable[..., Server], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return Server.from_bytes, (self._planned, self.to_bytes(), self.threads)


class Client(SecretHolder[_core.Client]):
    """Owns the secret key: encrypts the inputs of a plan of any kind and decrypts its result.

    `threads` work for it and for its server (0: one for each processor). The client of an `Index` is an
    `IndexClient`, that of a `PlainIndex` a `PlainClient`, that of a `ModelPlan` a `ModelClient`, that of a
    `learn.Plan` a `learn.Client`, which type checkers want by these names.

    >>> plan = sd.plan(lambda A, B: A @ B, A=sd.spec((2, 3)), B=sd.spec((3, 2)), error=1e-4)
    >>> client = sd.Client(plan)
    >>> server = client.server()
    >>> C = client.encrypt(np.ones((2, 3)), "A") @ client.encrypt(np.eye(3, 2), "B")
    >>> client.decrypt(C).round(3)
    array([[1., 1.],
           [1., 1.]])
    """

    _again = "Client.from_secret_bytes(plan, data)"

    def __new__(cls, plan: Any = None, *, threads: int = 0) -> Any:
        if isinstance(plan, Index):
            return IndexClient(plan, threads=threads)
        if isinstance(plan, PlainIndex):
            return PlainClient(plan, threads=threads)
        if isinstance(plan, ModelPlan):
            return ModelClient(plan, threads=threads)
        if isinstance(plan, FitPlan):
            return FitClient(plan, threads=threads)
        return super().__new__(cls)

    def __init__(self, plan: Plan, *, threads: int = 0) -> None:
        self._setup(_core.Client(plan._core, threads), plan, threads)

    def _setup(self, core: _core.Client, plan: Plan, threads: int) -> None:
        self._core, self._plan, self._threads = core, plan, threads
        self._home: Home[Server] = Home()
        self._columns: tuple[str, ...] = ()

    @classmethod
    def from_secret_bytes(cls, plan: Plan, data: Source, *, threads: int = 0) -> Client:
        """A client from the secret key that `secret_bytes` gave.

        Bytes-like, a path or an open binary file.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for a key of other parameters
        than the plan's.
        """
        client: Client = cls.__new__(cls)
        if isinstance(data, (str, os.PathLike)):
            core = _core.Client.load(plan._core, data, threads)
        else:
            core = _core.Client.from_secret_bytes(plan._core, octets(data), threads)
        client._setup(core, plan, threads)
        return client

    def public(self) -> PublicClient:
        """Encrypts for this client, and can do no more: for others, by `save` and `sudare.load`."""
        return PublicClient(self._plan, self._core.public_bytes(), threads=self._threads)

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._plan

    def server(self) -> Server:
        """The server for this client's data, made once: evaluation keys only."""
        if self._home.server is None:
            self._plan._forecast_keys()
            with progress("making keys") as report:
                self._home.server = Server(self._core.server(self._threads, report), self._plan)
        return self._home.server

    def encrypt(self, x: Any, name: str | None = None) -> Encrypted:
        """Encrypt an input of the plan; of a batch, all members at once along the first axis.

        `x` is anything that NumPy takes for an array of real numbers (of integers, for an exact plan) of the
        planned shape, Python's integers of any size among them; a data frame's columns name the statistics of
        a table. The name may be left out where there is one input. Integers are within their bound to the
        last digit.

        Raises `ShapeError` for another shape, `InputError` for a value that is not finite or over its bound,
        `PlanError` for a name that the plan does not have, `UnsupportedError` for what holds no numbers.
        """
        name, values, core, dropped = _encrypted(self._core, self._plan, x, name)
        if self._plan._statistics:
            warn_of_columns(self._plan, values)
            # Names stay here: neither plan nor ciphertext has them.
            self._columns = names_of(x) or self._columns
        return Encrypted(core, self._plan, self._home, dropped)

    @property
    def releases_left(self) -> int:
        """Results that may still be shown under this key, of those that the plan declares."""
        return self._core.releases_left

    def decrypt(
        self,
        x: Any,
        *,
        release: bool = False,
        private: bool = False,
        like: Any = None,
    ) -> Any:
        """Decrypt the result of the plan: an array, or the `Moments` of a table.

        Several results are decrypted as they are: a tuple, a list, a dictionary or a dataclass of them. Of
        any number of rows the result has as many. `like` is a data frame whose columns, or rows, a
        result has: it comes as one.

        Without `release` the result is for the owner's eyes: whoever sees it *and* the ciphertext
        can compute the secret key. With it, noise hides that, and the result is within `plan.errors`
        all the same; the plan has to declare it. Where it does, one of `release` and `private` has to be
        said. The count of releases is in what `secret_bytes` gives: save it again after each. Integers are
        int64, or Python's where 64 bits may not hold the planned bound. A stored matrix, a part of one and a
        tile of a cluster's are decrypted as well, block by block.

        Raises `KeyMismatchError` for a value of another plan or key, `PlanError` for one that is no result,
        `ReleaseError` for a release that is not declared or none is left of, and where the plan declares
        releases and neither word is said, `ShapeError` for other columns and rows than those of `like`.
        """
        released = wanted(release, private, self._plan.release is not None)

        def shown(part: Any) -> Any:
            found = self._decrypted(part, released)
            return found if like is None else framed(found, like)

        return each(shown, x)

    def _decrypted(self, x: Any, released: bool) -> Any:
        if isinstance(x, (StoredMatrix, EncryptedTile)):
            return self._decrypt_part(x, released)
        if not isinstance(x, Encrypted):
            raise UnsupportedError(f"an encrypted matrix is decrypted, not {type(x).__name__}")
        if isinstance(x._core, Unused):
            raise x._core.refusal
        if isinstance(x._core, Blocks):
            found = [self._decrypt_whole(block, released) for block in x.blocks]
            return np.concatenate(found)[: x.rows]
        return self._decrypt_whole(x, released)

    def _decrypt_whole(self, x: Encrypted, released: bool) -> Any:
        largest = self._plan._core.largest_integer
        if largest is not None and not released:
            found = self._core.decrypt_integers(x._core)
            return np.array(found, dtype=np.int64 if largest < 2**63 else object).reshape(x.shape)
        shown = self._core.decrypt(x._core, released)
        if self._plan._statistics:
            return moments(self._plan, shown[0], released, self._columns)
        return shown.reshape(x.shape)

    def _decrypt_part(self, x: StoredMatrix | EncryptedTile, released: bool) -> Any:
        """What is in a store, or came from a cluster; some blocks are in memory at a time."""
        if released or (isinstance(x, StoredMatrix) and not x._parts):
            value = x.load(self._plan) if isinstance(x, EncryptedTile) else x.load()
            return self._decrypt_whole(value, released)
        found: Floats = _core.decrypt_part(self._core, x._given).reshape(x.shape)
        return found

    def _repr_html_(self) -> str:
        return _html.client(self)

    def __repr__(self) -> str:
        return f"<sudare client {self._plan.method}, secret key hidden>"


class PublicClient(Travels):
    """Encrypts for a client under its public key, and can do no more.

    Made by `client.public()`, and from its bytes (or their file) on another machine. Statistics are planned
    for the noise of the secret key's encryptions, and have none.

    >>> plan = sd.plan(lambda A, B: A @ B, A=sd.spec((2, 3)), B=sd.spec((3, 2)), error=1e-4)
    >>> client = sd.Client(plan)
    >>> friend = sd.PublicClient(plan, client.public().to_bytes())
    >>> x, y = friend.encrypt(np.ones((2, 3)), "A"), friend.encrypt(np.eye(3, 2), "B")
    >>> client.decrypt(client.server().bind(x) @ y).shape
    (2, 2)
    """

    def __init__(self, plan: Plan, public: Source, *, threads: int = 0) -> None:
        self._public = octets(public)
        self._core, self._plan = _core.PublicClient(plan._core, self._public, threads), plan

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._plan

    def encrypt(self, x: Any, name: str | None = None) -> Encrypted:
        """Encrypt an input of the plan; takes and raises what `Client.encrypt` does."""
        _, _, core, dropped = _encrypted(self._core, self._plan, x, name)
        return Encrypted(core, self._plan, None, dropped)

    def to_bytes(self) -> bytes:
        """The public key, as it travels."""
        return self._public

    def _saved(self) -> bytes:
        return self._public

    def __reduce__(self) -> tuple[Callable[..., PublicClient], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return PublicClient, (self._plan, self._public)

    def __repr__(self) -> str:
        return f"<sudare public client {self._plan.method}>"


def _encrypted(core: Any, plan: Plan, x: Any, name: str | None) -> tuple[str, Any, Any, Shape]:
    """An input's name, its plain values, and what encryption makes of them: of any number of rows blocks."""
    name = _named(plan, x, name)
    values: Any = whole(x) if plan.exact else plain(x)
    shaped, dropped = rows(values)
    spec = plan.inputs.get(name)
    if is_frame(x) and not plan.exact and spec is not None:
        over = np.argwhere(np.abs(values) > (plan.max_abs if plan._statistics else spec.max_abs))
        if len(over):
            where = place(x, tuple(over[0].tolist()))
            raise InputError(f"{where} is over the planned bound; plan with a larger max_abs")

    def encrypted(part: Any) -> Any:
        if plan.exact:
            return core.encrypt_integers(name, packed(planned(part, plan.batch)), report)
        return core.encrypt(name, planned(part, plan.batch), report)

    with progress(f"encrypting {name}") as report:
        if not plan._blocks(name):
            return name, values, encrypted(shaped), dropped
        count, block = len(shaped), plan.block_rows
        # The last block is filled up with its last row, whose elements are where all are.
        filled = np.pad(shaped, ((0, -count % block), (0, 0)), mode="edge")
        parts = tuple(encrypted(filled[at : at + block]) for at in range(0, count, block))
        return name, values, Blocks(parts, count), dropped


def _named(plan: Plan, x: Any, name: str | None) -> str:
    """The input that is meant; nothing is encrypted twice."""
    if isinstance(x, Encrypted):
        raise UnsupportedError("this matrix is encrypted already; use it as it is")
    if name is not None:
        return name
    encrypted = [known for known, spec in plan.inputs.items() if not spec.plain]
    if len(encrypted) != 1:
        raise PlanError(f"say which input this is: {', '.join(encrypted)}")
    return encrypted[0]
