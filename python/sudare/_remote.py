"""A server far away: `sudare serve`, with the same operations as `client.server()`."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import secrets
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, cast
from urllib.parse import urlsplit

import numpy as np

from . import _core, _errors
from ._array import Floats
from ._errors import InputError, PlanError, SudareError, UnsupportedError, shown
from ._genome import Query, Sites
from ._plan import Plan
from ._progress import Report, progress
from ._session import Client, Server

__all__ = ["Remote", "RemoteError", "RemotePanel", "RemoteServer", "remote"]

# Bytes of an object that are sent or fetched in one request, seconds that the server waits for a job before
# it answers, and tries.
PIECE = 8 << 20
WAIT = 20
TRIES = 8
# Most seconds of a request with a piece of an object, and of any other; most bytes of an answer that is no
# piece, of an object, and of the description of a panel.
PIECE_SECONDS = 300.0
SECONDS = WAIT + 60.0
ANSWER = 8 << 20
OBJECT = 4 << 30
SITES = 1 << 30
# Most seconds that a job is waited for, and between two questions about it.
PATIENCE = 24 * 3600.0
PAUSE = 1.0

# The exception for each kind of refusal; one without a class of its own is a `RemoteError`.
CLASSES = _core.error_classes()


class RemoteError(SudareError, OSError):
    """A server far away that refused, or cannot be reached; `kind` says which."""

    def __init__(self, message: str, kind: str = "unreachable") -> None:
        super().__init__(shown(message))
        self.kind = kind


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def offset(self) -> int | None:
        """Where an upload goes on."""
        return _whole_number(self.headers.get("Upload-Offset"))

    def json(self) -> Any:
        """The body as JSON; a `RemoteError` for anything else."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise _nonsense("no JSON") from error


def _whole_number(text: Any) -> int | None:
    """A header's number, if it is one below 10^15."""
    return int(text) if isinstance(text, str) and re.fullmatch("[0-9]{1,15}", text) else None


def _nonsense(what: str) -> RemoteError:
    return RemoteError(
        f"the server's answer makes no sense: {what}; is it a sudare server of this release?", "answer"
    )


def _is(value: Any, pattern: str) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


@dataclass(frozen=True)
class _Job:
    """A job as the server tells it."""

    id: str
    state: str
    done: int
    steps: int
    result: str
    problem: Any

    @classmethod
    def of(cls, told: Any) -> _Job:
        if not isinstance(told, dict):
            raise _nonsense("no job")
        done, steps, state = told.get("done"), told.get("steps"), told.get("state")
        counted = all(type(number) is int and 0 <= number < 1 << 64 for number in (done, steps))
        if not counted or not _is(told.get("id"), "[0-9a-f]{32}") or not isinstance(state, str):
            raise _nonsense("no job")
        if state not in ("queued", "running", "done", "failed", "cancelled"):
            raise _nonsense("a job of an unknown state")
        result, problem = told.get("result", ""), told.get("problem")
        if state == "done" and not _is(result, "[0-9a-f]{64}"):
            raise _nonsense("a job without a result")
        return cls(told["id"], state, cast(int, done), cast(int, steps), result, problem)


class Remote:
    """A tenant's way to a server: sends objects, asks for jobs, fetches results.

    Made by `sudare.remote`. Threads may share it; one request goes at a time.
    """

    def __init__(self, url: str, token: str, ca: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(url, str) or "@" in url:
            # Such an address is never shown, nor kept.
            raise InputError("an address has no name and no password in it; give it as https://HOST:PORT")
        wrong = InputError(f"{url!r} is no address of a server; write it as https://HOST:PORT")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise wrong from None
        if parts.scheme not in ("http", "https") or not host or parts.path not in ("", "/"):
            raise wrong
        if parts.query or parts.fragment:
            raise wrong
        if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
            raise InputError("without TLS everybody on the line reads the token; give an https address")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise InputError("the token is none; take the one that `sudare token` printed")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._token, self._lock = token, threading.RLock()
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=None if ca is None else os.fspath(ca))
            self._connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=SECONDS, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
        # The connection is kept between requests, and ends with the last who holds this.
        weakref.finalize(self, self._connection.close)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], most: int, seconds: float
    ) -> _Answer:
        """A request and its answer of at most so many bytes, within so many seconds in all."""
        late = threading.Event()
        # The connection forgets the socket of an answer whose body ends with it.
        held: list[socket.socket] = []

        def end() -> None:
            late.set()
            for line in (self._connection.sock, *held):
                if line is not None:
                    with suppress(OSError):
                        line.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            try:
                self._connection.request(method, path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                # A server that refuses a body need not read it to its end: its answer may be there.
                if body is None:
                    raise
            held.append(self._connection.sock)
            with self._connection.getresponse() as got:
                # By pieces: a chunk of a length below zero would be read to the end of the connection.
                data = bytearray()
                while part := got.read1(most + 1 - len(data)):
                    data += part
                if len(data) > most:
                    raise _nonsense(f"more than {most} bytes")
                if got.length:
                    raise http.client.IncompleteRead(bytes(data), got.length)
            if late.is_set():
                raise TimeoutError(f"no answer within {seconds:.0f} s")
            return _Answer(got.status, got.headers, bytes(data))
        except (OSError, http.client.HTTPException) as error:
            if late.is_set() and not isinstance(error, RemoteError):
                raise TimeoutError(f"no answer within {seconds:.0f} s") from error
            raise
        finally:
            timer.cancel()

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        most: int = ANSWER,
        seconds: float = 0.0,
    ) -> _Answer:
        """A request that may be repeated, and its answer. Another try is made where it can help."""
        sent = {"Authorization": f"Bearer {self._token}", **(headers or {})}
        for attempt in range(TRIES):
            last = attempt + 1 == TRIES
            try:
                with self._lock:
                    answer = self._once(method, path, body, sent, most, seconds or SECONDS)
            except (RemoteError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
                self._connection.close()
                if isinstance(error, RemoteError):
                    raise
                raise _nonsense(type(error).__name__) from error
            except TimeoutError as error:
                self._connection.close()
                raise RemoteError(f"{self.url}: {error}", "slow") from error
            except ssl.SSLError as error:
                self._connection.close()
                raise RemoteError(
                    f"{self.url}: {error}; check the server's certificate, or give ca="
                ) from error
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if last:
                    text = f"{self.url}: {error}; check the address, and whether the server runs"
                    raise RemoteError(text) from error
                time.sleep(0.1 * 2 ** min(attempt, 5))
                continue
            if answer.status not in (429, 503) or last:
                return answer
            pause = _whole_number(answer.headers.get("Retry-After"))
            time.sleep(min(1 if pause is None else pause, 60))
        raise AssertionError("the last try returns or raises")

    def _done(self, answer: _Answer) -> _Answer:
        """The answer, unless it is a refusal."""
        if 200 <= answer.status < 300:
            return answer
        try:
            problem = answer.json()
        except RemoteError:
            text = f"{self.url} answered with status {answer.status}; is it a sudare server of this release?"
            raise RemoteError(text, "answer") from None
        raise refusal(problem)

    def config(self) -> dict[str, Any]:
        """Version, limits and panels of the server.

        Raises `RemoteError` for a server that cannot be reached or refuses.
        """
        found = self._done(self._ask("GET", "/v1/config")).json()
        if not isinstance(found, dict):
            raise _nonsense("no configuration")
        return found

    def send(self, data: bytes) -> str:
        """Send an object unless the server has it; its name. What was sent before goes on where it ended.

        Raises `RemoteError` for a server that cannot be reached or has no room.
        """
        name = hashlib.sha256(data).hexdigest()
        path, total = f"/v1/objects/{name}", len(data)
        answer = self._ask("HEAD", path)
        if answer.status == 200:
            return name
        if answer.status != 404 or answer.offset is None:
            # A HEAD has no words; a GET of the same has.
            self._done(self._ask("GET", path, headers={"Range": "bytes=0-0"}))
            raise _nonsense("an object that is here and is not")
        here = answer.offset
        if here >= total and here > 0:
            # What arrived whole and was not taken in is sent again.
            self._done(self._ask("DELETE", path))
            here = 0
        while True:
            piece = data[here : here + PIECE]
            span = {"Content-Range": f"bytes {here}-{here + len(piece) - 1}/{total}"}
            answer = self._ask("PUT", path, piece, span, seconds=PIECE_SECONDS)
            on = answer.offset
            # Each answer brings the upload forward, so that there are no more than it has bytes.
            if answer.status in (400, 408, 409) and on is not None and here < on < total:
                here = on
            elif self._done(answer).status != 202:
                return name
            elif here + len(piece) < total:
                here += len(piece)
            else:
                raise _nonsense("more is wanted of an object that was sent whole")

    def fetch(self, name: str) -> bytes:
        """An object by its name; what comes is compared with it.

        Raises `RemoteError` for a server that cannot be reached, has no such object or sends another.
        """
        data, total = bytearray(), 0
        while not data or len(data) < total:
            here = len(data)
            span = {"Range": f"bytes={here}-{here + PIECE - 1}"}
            path = f"/v1/objects/{name}"
            answer = self._done(self._ask("GET", path, headers=span, most=PIECE, seconds=PIECE_SECONDS))
            told = re.fullmatch(
                "bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})", answer.headers.get("Content-Range", "")
            )
            start, last, length = (int(number) for number in told.groups()) if told else (0, 0, 0)
            fits = (start, last) == (here, min(here + PIECE, length) - 1)
            fits = fits and len(answer.body) == last + 1 - here
            if answer.status != 206 or not fits or not 0 < length <= OBJECT or total not in (0, length):
                raise _nonsense("an object in pieces that do not fit")
            data += answer.body
            total = length
        if hashlib.sha256(data).hexdigest() != name:
            raise RemoteError(f"{self.url}: an object came damaged; ask again", "digest")
        return bytes(data)

    def run(self, request: dict[str, Any], report: Report | None = None) -> bytes:
        """Ask for a job and wait for its result. Ctrl-C cancels the job.

        Raises `RemoteError` for a server that cannot be reached; for a job that it refuses, the error
        that the refusal names, as computing here does.
        """
        body = json.dumps(request).encode()
        # An answer that was lost is asked for again, and the job is done once.
        headers = {"Content-Type": "application/json", "Idempotency-Key": secrets.token_hex(16)}
        job = _Job.of(self._done(self._ask("POST", "/v1/jobs", body, headers)).json())
        path, until, pause = f"/v1/jobs/{job.id}", time.monotonic() + PATIENCE, PAUSE / 64
        try:
            while job.state in ("queued", "running"):
                asked = time.monotonic()
                if asked > until:
                    raise RemoteError(f"{self.url}: the job has not ended in {PATIENCE:.0f} s", "slow")
                # Short waits where somebody looks.
                wait = WAIT if report is None else 1
                job = _Job.of(self._done(self._ask("GET", f"{path}?wait={wait}")).json())
                if report is not None and job.steps:
                    report(job.done, job.steps)
                if job.state in ("queued", "running"):
                    # A server that does not wait is not asked without a pause.
                    time.sleep(max(0.0, pause - (time.monotonic() - asked)))
                    pause = min(2 * pause, PAUSE)
        except KeyboardInterrupt:
            self._connection.close()
            with suppress(SudareError):
                self._ask("DELETE", path)
            raise
        if job.state == "failed":
            raise refusal(job.problem)
        if job.state != "done":
            raise RemoteError("the job was cancelled", "state")
        return self.fetch(job.result)

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


def refusal(problem: Any) -> SudareError:
    """The exception for a problem of the protocol."""
    told = problem if isinstance(problem, dict) else {}
    kind, detail = told.get("kind"), told.get("detail")
    if not isinstance(kind, str) or not isinstance(detail, str):
        return _nonsense("a refusal without words")
    made: type[SudareError] = getattr(_errors, CLASSES.get(kind, "SudareError"))
    return RemoteError(f"the server refused: {detail}", kind) if made is SudareError else made(shown(detail))


@dataclass(frozen=True)
class _Plain:
    """An input that the server sees, sent and waiting there."""

    name: str
    object: str
    shape: tuple[int, int]
    batch: int
    node: int = -1


class _Computes:
    """What a session's server does, done far away."""

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
        raise UnsupportedError("a server far away tells no key's name; the client does")

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
        with progress("computing far away") as report:
            found = self._remote.run(request, report)
        try:
            return _core.Encrypted.from_bytes(self._plan._core, found)
        except SudareError as error:
            raise _nonsense(f"a result that is none of this plan ({error})") from error

    def refresh(self, operand: Any, max_abs: float | None) -> NoReturn:
        raise UnsupportedError("a server far away computes by plans, and a plan refreshes by itself")


class RemoteServer(Server):
    """Computes by a plan far away, as `client.server()` does here. Made by `Remote.server`.

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
        raise UnsupportedError("a server far away does not pickle; make it by remote.server")


class RemotePanel:
    """A panel of a server far away: its description, and searches in it, as `genome.Server` has them."""

    def __init__(self, remote: Remote, name: str) -> None:
        self._remote, self._name, self._keys = remote, name, ""
        safe = all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
        if not name or not safe:
            raise InputError(f"{name!r} is no name of a panel")
        path = f"/v1/panels/{name}/sites"
        answer = remote._done(remote._ask("GET", path, most=SITES, seconds=PIECE_SECONDS))
        try:
            self.sites = Sites.from_bytes(answer.body)
        except SudareError as error:
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
        with progress("searching far away") as report:
            return self._remote.run(request, report)

    def __repr__(self) -> str:
        return f"<sudare genome panel {self._name} at {self._remote.url}>"


def remote(url: str, *, token: str, ca: str | os.PathLike[str] | None = None) -> Remote:
    """The way to a `sudare serve` with a tenant's token; `ca` are authorities of its certificate, PEM.

    `sudare.remote(url, token=token).server(client)` then computes as `client.server()` does.
    """
    return Remote(url, token, ca)
