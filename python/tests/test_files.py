"""Everything that travels is saved and loaded, in any order of calls."""

from __future__ import annotations

import io
import os
import stat
import zipfile
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

    def archive(**arrays: Any) -> bytes:
        out = io.BytesIO()
        np.savez(out, **arrays)
        return out.getvalue()

    hostile = io.BytesIO()
    with zipfile.ZipFile(hostile, "w") as file:
        file.writestr("rows.npy", "no array")
    for bad in (b"PK", archive(rows=3), hostile.getvalue(), archive(rows=np.array([{}], dtype=object))):
        with pytest.raises(sd.FormatError):
            sd.load(bad)


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
