"""Everything that travels is saved and loaded, in any order of calls."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import ERROR, Matrices, Session

QUICK = "insecure_test"


def test_a_whole_session_in_files(product: Session, matrices: Matrices, tmp_path: Path) -> None:
    plan, client, server = product
    a, b = matrices((5, 7), (7, 3))
    for name, thing in {
        "plan": plan,
        "client": client,
        "server": server,
        "public": client.public(),
        "a": client.encrypt(a, "A"),
    }.items():
        thing.save(tmp_path / name)

    again = sd.load(tmp_path / "plan")
    assert isinstance(again, sd.Plan)
    assert again == plan
    friend = sd.load(str(tmp_path / "public"), again)
    assert isinstance(friend, sd.PublicClient)
    friend.encrypt(b, "B").save(tmp_path / "b")

    computing = sd.load(tmp_path / "server", again, threads=1)
    assert isinstance(computing, sd.Server)
    assert computing.threads == 1
    x, y = sd.load(tmp_path / "a", computing), sd.load(tmp_path / "b", again)
    (x @ y).save(tmp_path / "c")

    owner = sd.load(tmp_path / "client", again)
    assert isinstance(owner, sd.Client)
    assert np.abs(owner.decrypt(sd.load(tmp_path / "c", owner)) - a @ b).max() < ERROR
    assert stat.S_IMODE(os.stat(tmp_path / "client").st_mode) == 0o600
    assert not list(tmp_path.glob(".*.part"))


def test_sources_of_every_kind(product: Session, matrices: Matrices, tmp_path: Path) -> None:
    plan, client, server = product
    (a,) = matrices((5, 7))
    data = client.encrypt(a, "A").to_bytes()
    (tmp_path / "a").write_bytes(data)
    with open(tmp_path / "a", "rb") as file:
        sources: list[Any] = [
            data,
            bytearray(data),
            memoryview(data),
            np.frombuffer(data, np.uint8),
            tmp_path / "a",
            str(tmp_path / "a"),
            file,
        ]
        for source in sources:
            assert sd.Encrypted.from_bytes(plan, source).to_bytes() == data
    assert sd.load(memoryview(data), plan).to_bytes() == data
    keys = bytearray(server.to_bytes())
    assert sd.Server.from_bytes(plan, keys).key_id == server.key_id
    assert sd.Client.from_secret_bytes(plan, bytearray(client.secret_bytes())).key_id == client.key_id
    target = io.BytesIO()
    client.encrypt(a, "A").save(target)
    assert sd.load(target.getvalue(), client).shape == (5, 7)
    for none in (None, 3, ["a"], io.StringIO("text")):
        with pytest.raises(sd.FormatError, match="bytes, a path or an open binary file"):
            sd.load(none, plan)  # type: ignore[arg-type]


def test_any_order_of_calls(matrices: Matrices) -> None:
    a, b = matrices((5, 7), (7, 3))
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((5, 7)), B=sd.spec((7, 3)), error=ERROR)
    client = sd.Client(plan, threads=1)
    x, y = client.encrypt(a, "A"), client.encrypt(b, "B")
    with pytest.raises(sd.UnsupportedError, match=r"client\.server\(\)"):
        x @ y
    client.server()
    assert np.abs(client.decrypt(x @ y) - a @ b).max() < ERROR

    table = sd.Client(sd.table((6, 2), max_abs=2))
    values = np.arange(12.0).reshape(6, 2) / 6
    encrypted = table.encrypt(values)
    assert np.allclose(table.decrypt(table.server().moments(encrypted)).mean, values.mean(axis=0), atol=1e-3)


def test_bits_in_files(tmp_path: Path) -> None:
    client = sd.BitsClient(parameters=QUICK, threads=1)
    x = client.encrypt(np.array([3, 200], np.uint8))
    with pytest.raises(sd.UnsupportedError, match=r"client\.server\(\)"):
        x + x
    client.server().save(tmp_path / "server")
    assert client.decrypt(x + x).tolist() == [6, 144]
    client.save(tmp_path / "client")
    x.save(tmp_path / "x")

    server = sd.load(tmp_path / "server", threads=1)
    assert isinstance(server, sd.BitsServer)
    y = sd.load(tmp_path / "x", server)
    assert isinstance(y, sd.EncryptedBits)
    (y * 2).save(tmp_path / "y")
    owner = sd.load(tmp_path / "client")
    assert isinstance(owner, sd.BitsClient)
    assert owner.decrypt(sd.load(tmp_path / "y")).tolist() == [6, 144]
    with pytest.raises(sd.UnsupportedError, match="bind"):
        sd.load(tmp_path / "y") + 1
    assert owner.decrypt(sd.load(bytearray(x.to_bytes()), server) + 1).tolist() == [4, 201]
    with pytest.raises(sd.PlanError, match="without its parameters"):
        sd.load(x.to_bytes())
    with pytest.raises(sd.UnsupportedError, match="parameters alone"):
        sd.load(client.params_bytes())


def test_statistics_in_files(tmp_path: Path) -> None:
    client = sd.Client(sd.table((6, 2), max_abs=2))
    values = np.random.default_rng(3).uniform(-2, 2, (6, 2))
    moments = client.decrypt(client.server().moments(client.encrypt(values)))
    moments.save(tmp_path / "moments")
    again = sd.load(tmp_path / "moments")
    assert isinstance(again, sd.Moments)
    assert again.rows == 6
    assert np.array_equal(again.covariance, moments.covariance)
    assert np.array_equal(again.mean_error, moments.mean_error)

    for bad in (
        b"PK",
        b"{",
        b'{"sudare": "statistics"',
        b'{"sudare": "statistics"}',
        b'{"sudare": "statistics"}x',
    ):
        with pytest.raises(sd.SudareError):
            sd.load(bad)


def test_statistics_from_anybody() -> None:
    """Kinds, signs and sizes are looked at."""
    good: dict[str, Any] = {
        "sudare": "statistics",
        "rows": 6,
        "mean": [0.0, 0.0],
        "covariance": [[1.0, 0.0], [0.0, 1.0]],
        "mean_error": [1e-6, 1e-6],
        "covariance_error": [[1e-6, 1e-6], [1e-6, 1e-6]],
        "columns": ["a", "b"],
    }
    assert sd.load(json.dumps(good).encode()).columns == ("a", "b")
    for changed in (
        {"rows": -5},
        {"rows": 6.0},
        {"rows": True},
        {"rows": [6]},
        {"mean": ["x", "y"]},
        {"mean": [0.0, 0.0, 0.0]},
        {"mean": [0.0, float("nan")]},
        {"mean": [0.0, 10**400]},
        {"mean": [[0.0], 0.0]},
        {"mean": None},
        {"covariance": [[-1.0, 0.0], [0.0, -1.0]]},
        {"covariance_error": [[-1.0, -1.0], [-1.0, -1.0]]},
        {"columns": [1, 2]},
        {"columns": ["a", "a"]},
        {"columns": "ab"},
        {"more": [0.0]},
    ):
        with pytest.raises(sd.FormatError):
            sd.load(json.dumps({**good, **changed}).encode())
    with pytest.raises(sd.FormatError):
        sd.load(json.dumps(good).encode()[:-30])


def test_what_is_no_file_of_ours_is_not_read(tmp_path: Path) -> None:
    """By its first bytes: a device without an end was read until memory was out."""
    for endless in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(sd.FormatError):
            sd.load(endless)
        with pytest.raises(sd.FormatError), open(endless, "rb") as file:
            sd.load(file)
    plan = sd.plan(lambda A: A.sum(axis=0), A=sd.spec((4, 2)), error=1e-4)
    client = sd.Client(plan, threads=1)
    # 3,000 objects in a row: each was asked for by a call within the one before.
    public = client.public().to_bytes()
    for many in (public * 2, public + public[:100], public * 3000 if len(public) < 1 << 16 else public * 20):
        (tmp_path / "many").write_bytes(many)
        with pytest.raises(sd.FormatError):
            sd.load(tmp_path / "many", plan)
        with pytest.raises(sd.InputError, match="holds something else"):
            client.save(tmp_path / "many")
    # A claim of more than the file has.
    with pytest.raises(sd.FormatError), open(os.devnull, "rb") as file:
        sd.load(file)
    read, write = os.pipe()
    os.write(write, plan.to_json().encode())
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert sd.load(pipe) == plan


def test_nothing_replaces_a_secret_key(product: Session, matrices: Matrices, tmp_path: Path) -> None:
    plan, client, server = product
    (a,) = matrices((5, 7))
    bits = sd.BitsClient(parameters=QUICK, threads=1)
    table = sd.Client(sd.table((6, 2), max_abs=2))
    moments = table.decrypt(table.server().moments(table.encrypt(np.zeros((6, 2)))))
    keys: dict[str, Any] = {"key": client, "bits": bits, "genome": sd.genome.Client()}
    others: list[Any] = [
        plan,
        server,
        client.public(),
        client.encrypt(a, "A"),
        moments,
        bits.encrypt(np.array([3], np.uint8)),
        bits.server(),
    ]
    for name, key in keys.items():
        key.save(tmp_path / name)
        held = (tmp_path / name).read_bytes()
        for thing in others:
            with pytest.raises(sd.InputError, match="holds a secret key"):
                thing.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == held
        assert sd.load(tmp_path / name, plan).key_id == key.key_id
    # What is asked for by name is done.
    plan.save(tmp_path / "key", overwrite=True)
    assert sd.load(tmp_path / "key") == plan
    client.save(tmp_path / "key", overwrite=True)
    assert stat.S_IMODE(os.stat(tmp_path / "key").st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["bits", "genome", "key"]


def test_a_save_that_was_killed_leaves_nothing_for_long(product: Session, tmp_path: Path) -> None:
    _, client, _ = product
    for left in (".key.abc123.part", ".other.abc123.part"):
        (tmp_path / left).write_bytes(b"half a key")
    client.save(tmp_path / "key")
    assert sorted(os.listdir(tmp_path)) == [".other.abc123.part", "key"]


SCAN = """
import gc, sys
import sudare as sd
plan = sd.load(sys.argv[1])
client = sd.Client(plan, threads=1)
client.save(sys.argv[2])
again = sd.load(sys.argv[2], plan, threads=1)
bits = sd.BitsClient(parameters="insecure_test", threads=1)
bits.save(sys.argv[2] + ".bits")
more = sd.load(sys.argv[2] + ".bits", threads=1)
kept = client.secret_bytes() if sys.argv[3] == "keep" else None
gc.collect()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="this system shows no memory")
@pytest.mark.parametrize("how", ["drop", "keep"])
def test_no_key_bytes_stay_in_memory(tmp_path: Path, how: str) -> None:
    """Of a key that was saved and loaded, its file's bytes are nowhere, unless somebody keeps them."""
    plan = sd.plan(lambda A: A.sum(axis=0), A=sd.spec((4, 2)), error=1e-4)
    plan.save(tmp_path / "plan")
    words = [sys.executable, "-c", SCAN, str(tmp_path / "plan"), str(tmp_path / "key"), how]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"ready\n"
        found = [_found(child.pid, tmp_path / name) for name in ("key", "key.bits")]
        child.stdin.close()
    if how == "keep":
        assert found[0] > 0
    else:
        assert found == [0, 0]


def _found(pid: int, path: Path) -> int:
    """How often 48 bytes of the last segment of a file are in a process's memory: those that differ most."""
    data = path.read_bytes()
    starts = range(max(0, len(data) - 4160), len(data) - 96, 8)
    needle = max((data[at : at + 48] for at in starts), key=lambda part: len(set(part)))
    assert len(set(needle)) > 2
    count = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            place, access = line.split()[:2]
            start, end = (int(x, 16) for x in place.split("-"))
            if "w" not in access or end - start > 1 << 32:
                continue
            try:
                memory.seek(start)
                count += memory.read(end - start).count(needle)
            except OSError:
                continue
    return count


def test_secret_keys_are_not_replaced(product: Session, tmp_path: Path) -> None:
    plan, client, _ = product
    client.save(tmp_path / "key")
    client.save(tmp_path / "key")  # with another count of releases, for example
    for other in (sd.Client(plan), sd.BitsClient(parameters=QUICK)):
        with pytest.raises(sd.InputError, match="name another file"):
            other.save(tmp_path / "key")
    (tmp_path / "note").write_text("not a key")
    with pytest.raises(sd.InputError, match="holds something else"):
        client.save(tmp_path / "note")
    assert sd.load(tmp_path / "key", plan).key_id == client.key_id


def test_refusals_name_the_remedy(product: Session, tmp_path: Path) -> None:
    plan, client, server = product
    for data in (client.secret_bytes(), server.to_bytes(), client.public().to_bytes()):
        with pytest.raises(sd.PlanError, match=r"sudare\.load\(file, plan\)"):
            sd.load(data)
    other = sd.plan(lambda A, B: A @ B, A=sd.spec((5, 7)), B=sd.spec((7, 4)), error=ERROR)
    with pytest.raises(sd.KeyMismatchError):
        sd.load(client.encrypt(np.zeros((5, 7)), "A").to_bytes(), other)
    for bad in (b"", b"x" * 200, b"{}", b"SUDARE\x1a\n", b"{\xff", server.to_bytes()[:-1]):
        with pytest.raises(sd.FormatError):
            sd.load(bad, plan)
    with pytest.raises(FileNotFoundError):
        sd.load(tmp_path / "nowhere")
    ctx = sd.context(depth=1, tile=4)
    for thing in (ctx, ctx.encrypt(np.eye(2))):
        with pytest.raises(sd.SudareError, match="plan"):
            thing.save(tmp_path / "context")
    assert not list(tmp_path.iterdir())


def test_genome_files(tmp_path: Path) -> None:
    data = Path(__file__).parents[2] / "data" / "genome" / "panel.vcf.gz"
    panel = sd.genome.Panel.from_vcf(data, tmp_path / "panel", kinds="snps")
    panel.sites.save(tmp_path / "sites")
    assert sd.load(tmp_path / "sites").hash == panel.hash
    assert sd.load(tmp_path / "panel").hash == panel.hash
    with pytest.raises(sd.UnsupportedError, match="path of its file"):
        sd.load((tmp_path / "panel").read_bytes())
    client = sd.genome.Client()
    client.save(tmp_path / "client")
    assert sd.load(tmp_path / "client").key_id == client.key_id


@pytest.mark.parametrize("name", ["\\ud800", "a"])
def test_names_of_columns_are_text_and_differ(name: str) -> None:
    none = np.zeros(2), np.zeros((2, 2))
    sd.Moments(5, none[0], np.eye(2), *none, ("a", "b")).save(file := io.BytesIO())
    assert b'"b"' in file.getvalue()
    with pytest.raises(sd.FormatError, match="name"):
        sd.load(file.getvalue().replace(b'"b"', f'"{name}"'.encode()))


def test_statistics_show_no_commands_for_a_terminal() -> None:
    none = np.zeros(2), np.zeros((2, 2))
    found = sd.Moments(5, none[0], np.eye(2), *none, ("a\x1b[2J", "b"))
    assert "\x1b" not in repr(found)
