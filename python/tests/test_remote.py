"""A remote server computes as one here does: `sudare serve` as a process, by way of sockets."""

from __future__ import annotations

import hashlib
import json
import pickle
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import serving
from sudare import _core, _remote


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server works."""
    return tmp_path_factory.mktemp("serve")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """An address and a token."""
    with serving(folder) as known:
        yield known


def test_a_circuit_on_a_remote_server(served: tuple[str, str]) -> None:
    remote = sd.remote(served[0], token=served[1])
    plan = sd.plan(
        lambda A, B, W: (A @ B + 1) * W,
        A=sd.spec((4, 3)),
        B=sd.spec((3, 2)),
        W=sd.spec((4, 2), plain=True),
        error=1e-4,
    )
    client = sd.Client(plan)
    server = remote.server(client)
    rng = np.random.default_rng(3)
    A, B, W = rng.uniform(-1, 1, (4, 3)), rng.uniform(-1, 1, (3, 2)), rng.uniform(-1, 1, (4, 2))
    found = client.decrypt((client.encrypt(A, "A") @ client.encrypt(B, "B") + 1) * W)
    assert np.abs(found - (A @ B + 1) * W).max() < 1e-4
    whole = server.run(client.encrypt(A, "A"), client.encrypt(B, "B"), server.plain(W, "W"))
    assert np.abs(client.decrypt(whole) - (A @ B + 1) * W).max() < 1e-4
    assert served[0] in repr(server)
    # From the keys alone, without the client.
    again = remote.server(plan, server.to_bytes())
    product = again.bind(client.encrypt(A, "A")) @ client.encrypt(B, "B")
    assert product.shape == (4, 2)
    with pytest.raises(sd.PlanError):
        _ = product @ product.T


def test_every_operation_is_computed_remotely(served: tuple[str, str]) -> None:
    def function(x: Any, y: Any) -> Any:
        return sd.bounded(x[1:] * y[0], 1.0).apply(np.tanh, (-1, 1), degree=3).sum(axis=0)

    plan = sd.plan(function, x=sd.spec((3, 2)), y=sd.spec((4, 2)), error=1e-2)
    client = sd.Client(plan)
    sd.remote(served[0], token=served[1]).server(client)
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-1, 1, (3, 2)), rng.uniform(-1, 1, (4, 2))
    found = client.decrypt(function(client.encrypt(x, "x"), client.encrypt(y, "y")))
    assert np.abs(found - np.tanh(x[1:] * y[0]).sum(axis=0)).max() < 1e-2


def test_integers_and_statistics_remotely(served: tuple[str, str]) -> None:
    remote = sd.remote(served[0], token=served[1])
    X = np.random.default_rng(4).uniform(-1, 1, (9, 2))
    client = sd.Client(sd.table((9, 2)))
    moments = client.decrypt(remote.server(client).moments(client.encrypt(X)))
    assert np.allclose(moments.covariance, np.cov(X, rowvar=False), atol=1e-5)


def test_a_table_at_a_server_answers_as_one_here(served: tuple[str, str], tmp_path: Path) -> None:
    remote = sd.remote(served[0], token=served[1])
    rng = np.random.default_rng(6)
    faces = rng.standard_normal((600, 32)).astype("f4")
    faces[::100] = faces[0]
    numbers = np.arange(1200, dtype="i2").reshape(600, 2) - 600
    index = sd.Index(d=32, above=0.85, gap=(0.8, 0.95), rows=2000, payload=("i2", 2), insecure=9)
    client, path = sd.IndexClient(index), tmp_path / "faces.sudare"
    server = client.server()
    client.store(path, faces, payload=numbers)
    with pytest.raises(sd.RemoteError, match="no table 'faces'") as caught:
        remote.index("faces")
    assert caught.value.kind == "not-found"
    remote.store("faces", path, server)
    there, here = remote.index("faces"), sd.open(path, server=server)
    assert (len(there), there.index.gap, remote.tables()) == (600, (0.8, 0.95), ["faces"])
    assert there.index.to_json() == index.to_json()
    question = client.query(faces[[0, 7]])
    answers: list[Callable[[sd.IndexTable], sd.IndexAnswer]] = [
        lambda table: table.count(question),
        lambda table: table.count(question, above=0.87),
        lambda table: table.histogram(question, [0.85, 0.87]),
        lambda table: table.scores(question),
    ]
    for answer in answers:
        assert np.array_equal(client.decrypt(answer(there)), client.decrypt(answer(here)))
    hits = client.decrypt(there.fetch(client.query(faces[0])))
    assert hits["index"].tolist() == list(range(0, 600, 100))
    assert hits["payload"].tolist() == numbers[::100].tolist()
    assert client.top(there, client.query(faces[3]), 1)["index"].tolist() == [3]
    client.append(path, faces[:1], payload=numbers[:1])
    there.append(path, server)
    assert len(there) == len(remote.index("faces")) == 601
    assert client.decrypt(there.count(client.query(faces[0]))) == 7
    # Another owner's questions, tables and keys.
    other = sd.IndexClient(index)
    with pytest.raises(sd.KeyMismatchError):
        there.count(other.query(faces[0]))
    with pytest.raises(sd.KeyMismatchError):
        remote.store("copy", path, other.server())
    other.store(tmp_path / "other.sudare", faces[:3], payload=numbers[:3])
    with pytest.raises(sd.KeyMismatchError, match="another"):
        remote.store("faces", tmp_path / "other.sudare", other.server())
    with pytest.raises(sd.PlanError):
        there.count(question, above=(0.9, 0.91))
    with pytest.raises(sd.InputError, match="not the name"):
        remote.index("../faces")
    assert "faces of 601 rows at" in repr(there)
    there.delete()
    assert remote.tables() == []


def test_a_model_at_a_server_answers_as_one_here(tmp_path: Path) -> None:
    X = np.sin(np.arange(40 * 6) ** 1.3).reshape(40, 6)
    layers = [sd.Dense(np.eye(6, 4), function="square"), sd.Dense(np.ones((4, 2)) + np.eye(4, 2))]
    model = sd.compile(layers, example=X, insecure=9)
    model.save(tmp_path / "model.bin")
    with serving(tmp_path, "--model", "net=model.bin") as (url, token):
        remote = sd.remote(url, token=token)
        assert remote.config()["models"] == [{"name": "net", "plan": model.plan.hash}]
        net = remote.model("net")
        client = sd.ModelClient(net.plan)
        with pytest.raises(sd.MissingKeyError, match="add_keys"):
            net.run(client.encrypt(X[:2]))
        net.add_keys(client)
        found = client.decrypt(net.run(client.encrypt(X[:5])))
        assert np.abs(found - model.polynomial(X[:5])).max() < 1e-2
        assert net.predict(client, X[:5]).tolist() == model.clear(X[:5]).argmax(axis=1).tolist()
        with pytest.raises(sd.KeyMismatchError):
            net.run(sd.ModelClient(net.plan).encrypt(X[:2]))
        other = sd.compile(layers, example=X, margin=3.0, insecure=9)
        with pytest.raises(sd.KeyMismatchError, match="another plan"):
            net.add_keys(sd.ModelClient(other.plan))
        with pytest.raises(sd.RemoteError, match="no such model"):
            remote.model("other")


def test_refusals_are_those_of_a_server_here(served: tuple[str, str]) -> None:
    url, token = served
    remote = sd.remote(url, token=token)
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((2, 2)), B=sd.spec((2, 2)), error=1e-4)
    client = sd.Client(plan)
    with pytest.raises(sd.RemoteError, match="stays with the client") as caught:
        remote.send(client.secret_bytes())
    assert caught.value.kind == "secret"
    with pytest.raises(sd.RemoteError, match="token"):
        sd.remote(url, token="sudare_0").config()
    x = client.encrypt(np.eye(2), "A")
    keyless = remote.server(plan, x.to_bytes()).bind(x)
    with pytest.raises(sd.FormatError):
        _ = keyless @ client.encrypt(np.eye(2), "B")
    with pytest.raises(sd.PlanError, match="keys"):
        remote.server(plan)
    with pytest.raises(sd.UnsupportedError, match="pickle"):
        pickle.dumps(remote)
    assert token not in repr(remote)
    for wrong in ("http://example.org", "ftp://localhost", "localhost:1", "https://"):
        with pytest.raises(sd.InputError):
            sd.remote(wrong, token=token)
    with pytest.raises(sd.InputError):
        sd.remote(url, token="a b")
    assert remote.config()["panels"] == []


def test_a_tenant_lists_and_removes_its_objects(tmp_path: Path) -> None:
    plan = sd.table((9, 2))
    clients = [sd.Client(plan), sd.Client(plan)]
    keys = len(clients[0].server().to_bytes())
    with serving(tmp_path, "--storage", str(keys + keys // 2)) as (url, token):
        remote = sd.remote(url, token=token)
        assert remote.objects() == []
        remote.server(clients[0])
        with pytest.raises(sd.RemoteError, match="delete objects") as caught:
            remote.server(clients[1])
        assert caught.value.kind == "quota"
        kinds = {known.kind: known for known in remote.objects()}
        assert kinds.keys() == {"a plan", "evaluation keys"}
        found = kinds["evaluation keys"]
        assert found.size == keys
        assert len(remote.fetch(found.name)) == keys
        assert abs((datetime.now(timezone.utc) - found.used).total_seconds()) < 600
        remote.delete(found.name)
        assert [known.kind for known in remote.objects()] == ["a plan"]
        remote.server(clients[1])
        with pytest.raises(sd.RemoteError) as caught:
            remote.delete(found.name)
        assert caught.value.kind == "not-found"
        with pytest.raises(sd.InputError):
            remote.delete("keys")


def test_every_kind_of_refusal_has_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_remote, "PATIENCE", (5.0, 5.0, 5.0, 1))
    classes = _core.error_classes()
    assert classes["missing-key"] == "MissingKeyError"
    assert classes["digest"] == "FormatError"
    for kind, name in {**classes, "tea": "SudareError"}.items():
        refusal = {"kind": kind, "detail": "why", "status": 422, "type": "x"}

        def give(line: socket.socket, _: str, body: bytes = answer(json.dumps(refusal), "422 No")) -> None:
            line.sendall(body)

        with Hostile(give) as server, pytest.raises(sd.SudareError) as caught:
            sd.remote(server.url, token="sudare_0").config()
        if name == "SudareError":
            # It has no class of its own: the kind says which.
            assert isinstance(caught.value, sd.RemoteError)
            assert caught.value.kind == kind
        else:
            assert type(caught.value) is getattr(sd, name)
            assert str(caught.value) == "why"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file here is a full disk")
def test_a_full_disk_is_told_at_once(served: tuple[str, str], folder: Path) -> None:
    data = np.random.default_rng(5).bytes(20_000_000)
    part = folder / "data" / "clinic" / "parts" / hashlib.sha256(data).hexdigest()
    part.symlink_to("/dev/full")
    started = time.monotonic()
    with pytest.raises(sd.RemoteError, match="disk is full") as caught:
        sd.remote(served[0], token=served[1]).send(data)
    assert caught.value.kind == "disk-full"
    assert time.monotonic() - started < 10
    part.unlink()


def test_an_answer_before_the_body_is_read() -> None:
    """A server that refuses at once and reads no more is heard, though sending fails."""
    refusal = b'{"kind": "disk-full", "detail": "the disk is full", "status": 507, "type": "x"}'
    early = answer(refusal, status="507 Insufficient Storage", headers="Connection: close")

    def give(line: socket.socket, head: str) -> None:
        if head.startswith("HEAD"):
            line.sendall(b"HTTP/1.1 404 Not Found\r\nUpload-Offset: 0\r\n\r\n")
        else:
            line.sendall(early)
            line.shutdown(socket.SHUT_WR)
            time.sleep(0.3)

    with Hostile(give) as server, pytest.raises(sd.RemoteError, match="disk is full") as caught:
        sd.remote(server.url, token="sudare_0").send(bytes(60_000_000))
    assert caught.value.kind == "disk-full"


class Hostile:
    """A server that answers each request as it is told, and goes on until it ends."""

    def __init__(self, give: Callable[[socket.socket, str], None]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.give, self.requests, self.over = give, 0, False

    def __enter__(self) -> Hostile:
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        self.listener.close()

    def accept(self) -> None:
        while not self.over:
            try:
                line, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.speak, args=(line,), daemon=True).start()

    def speak(self, line: socket.socket) -> None:
        line.settimeout(20)
        with line:
            try:
                while not self.over and (head := line.recv(1 << 16)):
                    self.requests += 1
                    self.give(line, head.decode("latin-1"))
            except OSError:
                pass


def answer(body: bytes | str = b"", status: str = "200 OK", headers: str = "") -> bytes:
    data = body.encode() if isinstance(body, str) else body
    more = f"{headers}\r\n" if headers else ""
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(data)}\r\n\r\n".encode() + data


def job(**what: Any) -> bytes:
    told = {"id": "0" * 32, "created": 0, "state": "queued", "done": 0, "steps": 0, **what}
    return answer(json.dumps(told))


def endless(head: str, part: bytes, pause: float = 0.0) -> Iterable[bytes]:
    yield f"HTTP/1.1 200 OK\r\n{head}".encode()
    for data in repeat(part):
        time.sleep(pause)
        yield data


Call = Callable[[sd.Remote], object]
NAME = hashlib.sha256(b"x").hexdigest()


def config(remote: sd.Remote) -> object:
    return remote.config()


def send(remote: sd.Remote) -> object:
    return remote.send(bytes(100))


def fetch(remote: sd.Remote) -> object:
    return remote.fetch(NAME)


def run(remote: sd.Remote) -> object:
    return remote.run({"kind": "compute", "plan": NAME, "operands": []})


def panel(remote: sd.Remote) -> object:
    return remote.panel("p")


PIECE = "206 Partial Content"
LATER = "503 Service Unavailable"
HOSTILE: dict[str, tuple[Call, bytes | Callable[[], Iterable[bytes]]]] = {
    "a body without an end": (config, lambda: endless("\r\n", bytes(1 << 20))),
    "chunks without an end": (
        config,
        lambda: endless("Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + bytes(1 << 16) + b"\r\n"),
    ),
    "a chunk of a length below zero": (
        config,
        lambda: endless("Transfer-Encoding: chunked\r\n\r\n-5\r\n", bytes(1 << 20)),
    ),
    "a chunk of no length": (config, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-" + b"9" * 60),
    "an object without an end": (fetch, lambda: endless("\r\n", bytes(1 << 20))),
    "a body byte by byte": (config, lambda: endless("Content-Length: 1000000\r\n\r\n", b" ", 0.1)),
    "a body without a length byte by byte": (config, lambda: endless("\r\n", b" ", 0.1)),
    "a line with a command for a terminal": (config, answer("{}", "500 \x1b[2J", "Content-Type: \x1b[2J")),
    "a refusal of 8 MB": (
        config,
        answer(json.dumps({"kind": "odd", "detail": "\x1b[2J" * 1_000_000}), "422 No"),
    ),
    "headers without an end": (config, lambda: endless("", b"X: y\r\n")),
    "a header without an end": (config, lambda: endless("X: ", bytes(1 << 16))),
    "100 for ever": (config, lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n")),
    "an object of a petabyte": (fetch, answer(b"x", PIECE, f"Content-Range: bytes 0-0/{10**15 - 1}")),
    "a piece of elsewhere": (fetch, answer(b"xy", PIECE, "Content-Range: bytes 5-6/7")),
    "a piece of nothing": (fetch, answer(b"", PIECE, "Content-Range: bytes 0-0/0")),
    "another object": (fetch, answer(b"y", PIECE, "Content-Range: bytes 0-0/1")),
    "a body that ends early": (config, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"),
    "202 for ever": (send, answer(b"", "202 Accepted", "Upload-Offset: 0")),
    "an offset that is none": (send, answer(b"", "404 Not Found", "Upload-Offset: x")),
    "an offset below zero": (send, answer(b"{}", "404 Not Found", "Upload-Offset: -5")),
    "a job that never ends": (run, job(state="running")),
    "broken JSON": (config, answer("{")),
    "no text": (config, answer(b"\xff\xfe{}")),
    "deep nesting": (config, answer("[" * 1_000_000)),
    "a list for a record": (config, answer("[]")),
    "a huge number": (run, answer('{"id": ' + "9" * 100_000 + "}")),
    "a number for a name": (run, job(id=7)),
    "a path for a name": (run, job(id="../../v1/config?" + "0" * 16)),
    "words for a count": (run, job(steps="many", state="running")),
    "no number": (run, answer('{"id": NaN, "state": Infinity}')),
    "a state of its own": (run, job(state="perhaps")),
    "a result that is no name": (run, job(state="done", result=["x"])),
    "a refusal without words": (run, job(state="failed")),
    "a refusal that is a list": (config, answer("[1]", "500 Internal Server Error")),
    "a time that is none": (config, answer("{}", LATER, "Retry-After: nan")),
    "a time without an end": (config, answer("{}", LATER, "Retry-After: -1e999")),
    "no protocol": (config, b"SSH-2.0-OpenSSH\r\n\r\n"),
    "another place": (config, answer(b"", "302 Found", "Location: http://127.0.0.1:1/")),
    "no description of a panel": (panel, answer(b"panel")),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_server_gets_an_error_and_nothing_else(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_remote, "PATIENCE", (3.0, 3.0, 1.0, 2))
    call, told = HOSTILE[case]

    def give(line: socket.socket, head: str) -> None:
        if call is send and case == "202 for ever" and head.startswith("HEAD"):
            line.sendall(b"HTTP/1.1 404 Not Found\r\nUpload-Offset: 0\r\nContent-Length: 0\r\n\r\n")
        elif isinstance(told, bytes):
            line.sendall(told)
            if case == "a body that ends early":
                line.shutdown(socket.SHUT_WR)
        else:
            for data in told():
                if server.over:
                    return
                line.sendall(data)

    started = time.monotonic()
    with Hostile(give) as server, pytest.raises(sd.RemoteError) as caught:
        call(sd.remote(server.url, token="sudare_0"))
    assert time.monotonic() - started < 20
    assert server.requests < 40
    assert "sudare_0" not in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1100
    assert not isinstance(caught.value, MemoryError)


def test_an_endless_answer_takes_no_memory() -> None:
    """Beside a limit of memory that it would be over within a second."""
    if sys.platform != "linux":
        pytest.skip("processes tell their memory elsewhere in other ways")
    import resource

    def give(line: socket.socket, _: str) -> None:
        for data in endless("\r\n", bytes(1 << 20)):
            line.sendall(data)

    with Hostile(give) as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(sd.RemoteError, match="more than"):
            sd.remote(server.url, token="sudare_0").config()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_password_in_an_address_is_neither_shown_nor_kept() -> None:
    for url in (
        "https://clinic:hidden@example.org",
        "https://hidden@example.org",
        "http://a:hidden@localhost:1",
    ):
        with pytest.raises(sd.InputError, match="password") as caught:
            sd.remote(url, token="sudare_0")
        assert "hidden" not in str(caught.value)
    for url in ("https://example.org:port", "https://[::1", "https://example.org?x", "https://example.org#x"):
        with pytest.raises(sd.InputError, match="address"):
            sd.remote(url, token="sudare_0")
