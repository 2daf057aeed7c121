"""A server on another machine: `sudare serve`, with the same operations as `client.server()`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np

from . import _core
from ._array import Floats
from ._errors import FormatError, InputError, PlanError, RemoteError, SudareError, UnsupportedError
from ._genome import Query, Sites
from ._plan import Plan
from ._progress import Report, progress
from ._session import Client, Server

__all__ = ["Remote", "RemoteError", "RemotePanel", "RemoteServer", "remote"]

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
        """Version, limits and panels of the server.

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

    def __repr__(self) -> str:
        return f"<sudare remote {self.url}, token hidden>"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a way to a server holds a token and does not pickle; make it by sudare.remote"
        )


def _pem(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _nonsense(what: str) -> RemoteError:
    return RemoteError(
        f"the server's answer makes no sense: {what}; is it a sudare server of this release?", "answer"
    )


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

    def __init__(self, remote: Remote, plan: Plan, keys: bytes | None) -> None:
        self._remote, self._plan = remote, plan
        self._sent = remote.send(plan._core.to_json().encode())
        self._keys = None if keys is None else remote.send(keys)
        self.key_bytes = 0 if keys is None else len(keys)
        self.threads = 0

    def keys_bytes(self) -> bytes:
        return b"" if self._keys is None else self._remote.fetch(self._keys)

    @property
    def key_id(self) -> str:
        raise UnsupportedError("a remote server tells no key's name; the client does")

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
            raise _nonsense(f"a result that is none of this plan ({error})") from error

    def refresh(self, operand: Any, max_abs: float | None) -> NoReturn:
        raise UnsupportedError("a remote server computes by plans, and a plan refreshes by itself")


class RemoteServer(Server):
    """Computes by a plan on another machine, as `client.server()` does here. Made by `Remote.server`.

    Operands that the server has, results among them, are not sent again.
    """

    def __init__(self, remote: Remote, plan: Plan, keys: bytes | None) -> None:
        super().__init__(cast(_core.Server, _Computes(remote, plan, keys)), plan)
        self.remote = remote

    def run(self, *inputs: Any) -> Any:
        """The plan's whole expression from its encrypted inputs, in one job: nothing in between travels.

        Raises `InputError` without inputs, and otherwise what `Remote.run` does.
        """
        first = inputs[0] if inputs else None
        if first is None:
            raise InputError("give the inputs of the plan")
        core = cast(_Computes, self._core).apply(None, [x._core for x in inputs])
        return self.bind(first)._wrap(core, ())

    def __repr__(self) -> str:
        megabytes = self.key_bytes / 1e6
        method = self._planned.method
        return f"<sudare server {method} at {self.remote.url}, keys {megabytes:.1f} MB, no secret>"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError("a remote server does not pickle; make it by remote.server")


class RemotePanel:
    """A panel of a remote server: its description, and searches in it, as `genome.Server` has them."""

    def __init__(self, remote: Remote, name: str) -> None:
        self._remote, self._name, self._keys = remote, name, ""
        try:
            self.sites = Sites.from_bytes(remote._core.sites(name))
        except FormatError as error:
            raise _nonsense(f"no description of a panel ({error})") from error

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


def remote(url: str, *, token: str, ca: str | os.PathLike[str] | None = None) -> Remote:
    """The way to a `sudare serve` with a tenant's token; `ca` are authorities of its certificate, PEM.

    `sudare.remote(url, token=token).server(client)` then computes as `client.server()` does.
    """
    return Remote(url, token, ca)
