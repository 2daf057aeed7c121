"""A server on another machine: `sudare serve`, with the same operations as `client.server()`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._array import Floats
from ._errors import (
    FormatError,
    InputError,
    KeyMismatchError,
    MissingKeyError,
    PlanError,
    RemoteError,
    SudareError,
    UnsupportedError,
)
from ._files import PathLike
from ._genome import Query, Sites
from ._index import Index, IndexServer, IndexTable
from ._models import ModelAnswer, ModelClient, ModelPlan, ModelRequest
from ._plan import Plan
from ._progress import Report, progress
from ._session import Client, Server

__all__ = [
    "Remote",
    "RemoteError",
    "RemoteModel",
    "RemoteObject",
    "RemotePanel",
    "RemoteRoom",
    "RemoteServer",
    "RemoteTable",
    "remote",
]

#: Seconds of an answer, of a piece of an object and of a job, and tries; None for those of the extension.
PATIENCE: tuple[float, float, float, int] | None = None


class Remote:
    """A tenant's way to a server: sends objects, asks for jobs, fetches results.

    Made by `sudare.remote`. Threads may share it.
    """

    def __init__(self, url: str, token: str, ca: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(url, str) or not isinstance(token, str):
            raise InputError("the address and the token of a server are text")
        self._core = _core.Remote(url, token, None if ca is None else _pem(ca), PATIENCE)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._core.url

    def config(self) -> dict[str, Any]:
        """Version, limits, panels and models of the server.

        Raises `RemoteError` for a server that cannot be reached or refuses.
        """
        return cast("dict[str, Any]", json.loads(self._core.config()))

    def send(self, data: bytes) -> str:
        """Send an object unless the server has it; its name. What was sent before goes on where it ended.

        Raises `RemoteError` for a server that cannot be reached or has no room.
        """
        return self._core.send(data)

    def fetch(self, name: str) -> bytes:
        """An object by its name; what comes is compared with it.

        Raises `RemoteError` for a server that cannot be reached, has no such object or sends another.
        """
        return self._core.fetch(name)

    def objects(self) -> list[RemoteObject]:
        """The objects that this tenant has at the server, the longest unused first: they take its storage.

        Tables, rooms and records of jobs take storage too.

        Raises `RemoteError` for a server that cannot be reached or refuses.
        """
        found = self._core.objects()
        try:
            return [
                RemoteObject(name, kind, size, datetime.fromtimestamp(used / 1000, timezone.utc))
                for name, kind, size, used in found
            ]
        except (OSError, OverflowError, ValueError) as error:
            raise _nonsense(f"an object was used at no moment ({error})") from error

    def delete(self, name: str) -> None:
        """Remove an object by its name. Evaluation keys that are removed have to be sent again.

        Raises `RemoteError` for a server that cannot be reached or has no such object, and of the kind
        "state" while a job that waits or runs names the object, or a room has it.
        """
        self._core.delete_object(name)

    def run(self, request: dict[str, Any], report: Report | None = None) -> bytes:
        """Ask for a job and wait for its result. Ctrl-C cancels the job.

        Raises `RemoteError` for a server that cannot be reached; for a job that it refuses, the error
        that the refusal names, as computing here does.
        """
        return self._core.run(json.dumps(request), report)

    def server(self, of: Client | Plan, keys: bytes | None = None) -> RemoteServer:
        """A server with a client's evaluation keys, which are sent once.

        Of a client, whose values are then computed with there; or of a plan with the `keys` that
        `server.to_bytes()` gave, without any client.

        Raises `PlanError` for a plan that takes keys, without any, and `RemoteError` for a server
        that cannot be reached.
        """
        if isinstance(of, Plan):
            if keys is None and not of.exact:
                raise PlanError("this plan computes with evaluation keys: remote.server(plan, keys)")
            return RemoteServer(self, of, keys)
        if keys is not None:
            raise PlanError("a client makes its own keys; give them with a plan")
        if not of.plan.exact:
            with progress("making keys") as report:
                keys = of._core.server(of._threads, report).keys_bytes()
        made = RemoteServer(self, of.plan, keys)
        of._home.server = made
        return made

    def panel(self, name: str) -> RemotePanel:
        """A haplotype panel of the server, by the name that `config()` has."""
        return RemotePanel(self, name)

    def index(self, name: str) -> RemoteTable:
        """A table of encrypted vectors that is at the server, by its name: it answers as one here does.

        Raises `RemoteError` for a server that cannot be reached, or has no such table of this tenant.
        """
        return RemoteTable(self, name)

    def store(self, name: str, path: PathLike, server: IndexServer) -> RemoteTable:
        """Send a table that `client.store` wrote to a folder, with the keys of `client.server()`.

        It gets a name of letters, digits, hyphens and underscores there, under which it stays until
        `delete`. What the server has of it is not sent again: the same call goes on after an interruption,
        and after `client.append`. The table keeps the keys that it came with first.

        Raises `KeyMismatchError` for a table of another plan or key, or another one under the name;
        `FormatError` for files that are damaged; as `send` and `run`.
        """
        path, found = os.fspath(path), self._core.table(name)
        first, last = server._core.lacking(path, None if found is None else found[2])
        begin = None
        if found is None:
            begin = (self.send(server._index._saved()), self.send(server.to_bytes()))
        with progress("sending segments") as report:
            for segment in range(first, last):
                self._core.append(name, server._core, path, segment, begin)
                if report is not None:
                    report(segment + 1, last)
        return RemoteTable(self, name)

    def tables(self) -> list[str]:
        """The names of the tables that this tenant has at the server.

        Raises `RemoteError` for a server that cannot be reached or refuses.
        """
        return self._core.tables()

    def room(self, name: str) -> RemoteRoom:
        """A room of the server, where parties that hold a key together meet: `sudare.Party` takes it.

        Its name has letters, digits, hyphens, underscores and dots, up to 64. It is made with its first
        message, and stays until `delete`. All parties are one tenant, each with a token of its own.
        """
        return RemoteRoom(self, name)

    def rooms(self) -> list[str]:
        """The names of the rooms that this tenant has at the server.

        Raises `RemoteError` for a server that cannot be reached or refuses.
        """
        return self._core.rooms()

    def model(self, name: str) -> RemoteModel:
        """A compiled model of the server, by the name that `config()` has.

        Raises `RemoteError` for a server that cannot be reached, or has no such model.
        """
        return RemoteModel(self, name)

    def __repr__(self) -> str:
        return f"<sudare remote {self.url}, token hidden>"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a connection to a server holds a token and does not pickle; make it again by sudare.remote"
        )


def _pem(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _nonsense(what: str) -> RemoteError:
    return RemoteError(
        f"the server's answer makes no sense: {what}; check that it is a sudare server of this release",
        "answer",
    )


@dataclass(frozen=True)
class RemoteObject:
    """An object of a tenant at a server. Made by `Remote.objects`."""

    #: SHA-256 of its bytes, as `Remote.send` gives it.
    name: str
    #: What it is, in words, as "evaluation keys"; "an unfinished upload" for what has arrived of one.
    kind: str
    #: Its bytes on the server's disk.
    size: int
    #: When it was last sent to, read or named by a job.
    used: datetime


@dataclass(frozen=True)
class _Plain:
    """An input that the server sees, sent and waiting there."""

    name: str
    object: str
    shape: tuple[int, int]
    batch: int
    node: int = -1


class _Computes:
    """What a session's server does, done on another machine."""

    levels = 0
    columns: int | None = None
    log_n = 0

    def __init__(self, remote: Remote, plan: Plan, keys: bytes | tuple[str, int] | None) -> None:
        self._remote, self._plan = remote, plan
        self._sent = remote.send(plan._core.to_json().encode())
        self._keys: str | None = None
        self.key_bytes = self.threads = 0
        if keys is not None:
            # What is there already has a name and a length.
            sent = (remote.send(keys), len(keys)) if isinstance(keys, bytes) else keys
            self._keys, self.key_bytes = sent

    def keys_bytes(self) -> bytes:
        return b"" if self._keys is None else self._remote.fetch(self._keys)

    @property
    def key_id(self) -> str:
        raise UnsupportedError("a remote server does not know the name of the key; ask the client")

    def counters(self) -> dict[str, int]:
        return {}

    def plain(self, name: str, values: Floats) -> _Plain:
        data = np.ascontiguousarray(values, dtype="<f8").tobytes()
        return _Plain(name, self._remote.send(data), (values.shape[1], values.shape[2]), values.shape[0])

    def plain_integers(self, name: str, values: _core._Integers) -> _Plain:
        shape, elements = values if isinstance(values, tuple) else (values.shape, values.ravel().tolist())
        data = b"".join(x.to_bytes(16, "little", signed=True) for x in elements)
        return _Plain(name, self._remote.send(data), (shape[1], shape[2]), shape[0])

    def _operand(self, value: Any) -> dict[str, str]:
        if isinstance(value, _Plain):
            return {"object": value.object, "plain": value.name}
        return {"object": self._remote.send(value.to_bytes())}

    def apply(self, operation: str | None, operands: Sequence[Any]) -> _core.Encrypted:
        """An operation, given as JSON; without one the plan's whole expression."""
        request: dict[str, Any] = {
            "kind": "compute",
            "plan": self._sent,
            "operands": [self._operand(x) for x in operands],
        }
        if operation is not None:
            request["operation"] = json.loads(operation)
        if self._keys is not None:
            request["keys"] = self._keys
        with progress("computing remotely") as report:
            found = self._remote.run(request, report)
        try:
            return _core.Encrypted.from_bytes(self._plan._core, found)
        except SudareError as error:
            raise _nonsense(f"its result is not one of this plan ({error})") from error

    def refresh(self, operand: Any, max_abs: float | None) -> NoReturn:
        raise UnsupportedError(
            "a remote server computes by plans, and a plan refreshes by itself; leave the refresh out"
        )


class RemoteServer(Server):
    """Computes by a plan on another machine, as `client.server()` does here. Made by `Remote.server`.

    Operands that the server has, results among them, are not sent again.
    """

    def __init__(self, remote: Remote, plan: Plan, keys: bytes | tuple[str, int] | None) -> None:
        super().__init__(cast(_core.Server, _Computes(remote, plan, keys)), plan)
        self.remote = remote

    def run(self, *inputs: Any) -> Any:
        """The plan's whole expression from its encrypted inputs, in one job: nothing in between travels.

        Raises `InputError` without inputs, and otherwise what `Remote.run` does.
        """
        first = inputs[0] if inputs else None
        if first is None:
            raise InputError("no input was given; give those of the plan")
        core = cast(_Computes, self._core).apply(None, [x._core for x in inputs])
        return self.bind(first)._wrap(core, ())

    def __repr__(self) -> str:
        megabytes = self.key_bytes / 1e6
        method = self._planned.method
        return f"<sudare server {method} at {self.remote.url}, keys {megabytes:.1f} MB, no secret>"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError("a remote server does not pickle; make it again by remote.server")


class RemoteRoom:
    """A room of a server, where parties that hold a key together meet. Made by `Remote.room`.

    `sudare.Parties.begin`, `sudare.Party` and `sudare.combine` take it where they take a folder.
    """

    def __init__(self, remote: Remote, name: str) -> None:
        self.remote, self.name = remote, name

    def combined(self, plan: Plan) -> RemoteServer:
        """The server with the keys that it adds from the parties' messages; `sudare.combine` asks for it.

        Raises as `sudare.combine`.
        """
        request = {"kind": "combine", "room": self.name}
        with progress("combining keys remotely") as report:
            return RemoteServer(self.remote, plan, self.remote._core.make(json.dumps(request), report))

    def delete(self) -> None:
        """Remove the room and its messages from the server. The parties' homes stay.

        Raises `RemoteError` for a server that cannot be reached, or has no such room.
        """
        self.remote._core.delete_room(self.name)

    def __repr__(self) -> str:
        return f"<sudare room {self.name} at {self.remote.url}>"


class RemotePanel:
    """A panel of a remote server: its description, and searches in it, as `genome.Server` has them."""

    def __init__(self, remote: Remote, name: str) -> None:
        self._remote, self._name, self._keys = remote, name, ""
        try:
            self.sites = Sites.from_bytes(remote._core.sites(name))
        except FormatError as error:
            raise _nonsense(f"it does not describe a panel ({error})") from error

    def add_keys(self, keys: bytes) -> None:
        """Send a client's evaluation keys, for the protocols that have any."""
        self._keys = self._remote.send(keys)

    def search(self, query: bytes | Query, *, pad: int | None = None) -> bytes:
        """Answers a query; `pad` is a class of the range that the panel's owner set (`config()` has it)."""
        data = query.data if isinstance(query, Query) else query
        request: dict[str, Any] = {"kind": "search", "panel": self._name, "query": self._remote.send(data)}
        if self._keys:
            request["keys"] = self._keys
        if pad is not None:
            request["pad"] = pad
        with progress("searching remotely") as report:
            return self._remote.run(request, report)

    def __repr__(self) -> str:
        return f"<sudare genome panel {self._name} at {self._remote.url}>"


class _Asks:
    """What a table that is open here does, done on another machine."""

    def __init__(self, remote: Remote, name: str) -> None:
        found = remote._core.table(name)
        if found is None:
            raise RemoteError(
                f"there is no table {name!r} of yours at {remote.url}; send one by remote.store", "not-found"
            )
        self.rows, plan, manifest = found
        self._remote, self._name = remote, name
        try:
            self.index = Index.from_json(plan)
            count = len(json.loads(manifest)["segments"])
        except (SudareError, ValueError, KeyError, TypeError) as error:
            raise _nonsense(f"it does not describe a table ({error})") from error
        self.segments = (count, count)

    def _ask(
        self, kind: str, query: _core.IndexQuery, report: Report | None, **more: Any
    ) -> _core.IndexAnswer:
        sent = self._remote.send(query.to_bytes())
        found = self._remote.run({"kind": kind, "table": self._name, "query": sent, **more}, report)
        try:
            return _core.IndexAnswer.from_bytes(self.index._core, found)
        except SudareError as error:
            raise _nonsense(f"its answer is not one of this table ({error})") from error

    def count(
        self, query: _core.IndexQuery, gaps: Sequence[tuple[float, float]], report: Report | None
    ) -> _core.IndexAnswer:
        return self._ask("count", query, report, gaps=gaps)

    def fetch(
        self, query: _core.IndexQuery, gap: tuple[float, float], report: Report | None
    ) -> _core.IndexAnswer:
        return self._ask("fetch", query, report, gap=gap)

    def scores(self, query: _core.IndexQuery, report: Report | None) -> _core.IndexAnswer:
        return self._ask("scores", query, report)


class RemoteTable(IndexTable):
    """A table at a remote server, which answers as one that `sudare.open` opened. Made by `Remote.index`.

    The server keeps it open between questions, as far as its memory allows.
    """

    def __init__(self, remote: Remote, name: str) -> None:
        asks = _Asks(remote, name)
        super().__init__(cast(_core.IndexTable, asks), asks.index)
        self.remote, self.name = remote, name

    @property
    def index(self) -> Index:
        """The plan, as it came with the table."""
        return self._index

    def append(self, path: PathLike, server: IndexServer) -> None:
        """Send what `client.append` added to the table's folder here. Raises as `Remote.store`."""
        self._core = self.remote.store(self.name, path, server)._core

    def delete(self) -> None:
        """Remove the table from the server. Raises `RemoteError` while a job of yours asks it."""
        self.remote._core.delete_table(self.name)

    def __repr__(self) -> str:
        return f"<sudare table {self.name} of {len(self)} rows at {self.remote.url}, no secret>"


class RemoteModel:
    """A compiled model at a remote server: encrypted inputs in, encrypted answers out.

    Made by `Remote.model`. `sudare.Client(model.plan)` is its client.
    """

    def __init__(self, remote: Remote, name: str) -> None:
        self.remote, self.name, self._keys = remote, name, ""
        try:
            self.plan = ModelPlan.from_json(remote._core.model_plan(name))
        except FormatError as error:
            raise _nonsense(f"it sends no plan of a model ({error})") from error

    def add_keys(self, client: ModelClient) -> None:
        """Make a client's evaluation keys and send them.

        Raises `KeyMismatchError` for a client of another plan, and as `Remote.send`.
        """
        if client.plan.hash != self.plan.hash:
            raise KeyMismatchError("this client is of another plan than the model; make one of model.plan")
        self._keys = self.remote.send(client._core.keys_bytes())

    def run(self, request: ModelRequest) -> ModelAnswer:
        """The model's answers to encrypted inputs.

        Raises `MissingKeyError` before `add_keys`, and as `Remote.run`.
        """
        if not self._keys:
            raise MissingKeyError("the model computes with evaluation keys: model.add_keys(client) first")
        sent = self.remote.send(request.to_bytes())
        with progress("computing remotely") as report:
            found = self.remote.run(
                {"kind": "infer", "model": self.name, "keys": self._keys, "inputs": sent}, report
            )
        try:
            return ModelAnswer.from_bytes(self.plan, found)
        except SudareError as error:
            raise _nonsense(f"its answer is not one of this model ({error})") from error

    def predict(self, client: ModelClient, inputs: ArrayLike) -> NDArray[Any]:
        """Encrypts inputs, has them computed on, and decrypts: labels of a classifier, else numbers.

        Raises as `ModelClient.encrypt`, `run` and `ModelClient.decrypt`.
        """
        return client.plan._labels(client.decrypt(self.run(client.encrypt(inputs))))

    def __repr__(self) -> str:
        return f"<sudare model {self.name} at {self.remote.url}>"


def remote(url: str, *, token: str, ca: str | os.PathLike[str] | None = None) -> Remote:
    """The way to a `sudare serve` with a tenant's token; `ca` are authorities of its certificate, PEM.

    `sudare.remote(url, token=token).server(client)` then computes as `client.server()` does.
    """
    return Remote(url, token, ca)
