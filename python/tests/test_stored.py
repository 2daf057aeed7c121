"""Stored matrices: what they say of themselves, their blocks, and products in little memory."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import sudare as sd

M, K, N = 70, 90, 50


@pytest.fixture(scope="module")
def world() -> tuple[sd.Plan, sd.Client, sd.Server]:
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((M, K)), B=sd.spec((K, N)), error=1e-4, method="coefficient")
    client = sd.Client(plan, threads=2)
    return plan, client, client.server()


def values(rows: int, cols: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.random.default_rng(rows).uniform(-1, 1, (rows, cols))


def test_a_product_in_little_memory(world: tuple[sd.Plan, sd.Client, sd.Server], tmp_path: Path) -> None:
    plan, client, server = world
    a, b = values(M, K), values(K, N)
    sd.store(tmp_path / "a.sudare", a, client=client, name="A")
    sd.store(tmp_path / "b.sudare", client.encrypt(b, "B"))
    left, right = (sd.open(tmp_path / name, server=server) for name in ("a.sudare", "b.sudare"))
    assert left.plan == plan
    assert left.shape == (M, K)
    product = left @ right
    assert product.shape == (M, N)
    with pytest.raises(sd.PlanError, match=r"takes at least (\d+) bytes") as refused:
        product.save(tmp_path / "c.sudare", memory="1 MB")
    least = int(str(refused.value).split("at least ")[1].split()[0])
    told = product.schedule(tmp_path / "c.sudare", memory=least)
    assert told["memory"] <= least
    assert told["left_passes"] + told["right_passes"] > 2
    assert "passes" in product.explain(tmp_path / "c.sudare", memory="8 GB")

    saved = product.save(tmp_path / "c.sudare", memory=least)
    assert np.abs(client.decrypt(saved.load()) - a @ b).max() < 1e-4
    in_memory = server.bind(left.load()) @ right.load()
    assert saved.load().to_bytes() == in_memory.to_bytes()
    with pytest.raises(sd.SudareError, match="exists already"):
        product.save(tmp_path / "c.sudare", memory=least)
    again = product.save(tmp_path / "c.sudare", memory=least, resume=True)
    assert again.digest == saved.digest
    # In other memory it is cut into other shards, of the same bits.
    roomy = np.matmul(left, right).save(tmp_path / "d.sudare", memory="1 GB")
    assert roomy.load().to_bytes() == in_memory.to_bytes()
    saved.verify()


def test_what_a_store_says(world: tuple[sd.Plan, sd.Client, sd.Server], tmp_path: Path) -> None:
    _, client, _ = world
    a = values(M, K)
    public = client.public()
    x = sd.store(tmp_path / "a.sudare", a, client=public, name="A")
    rows, cols = x.blocks.shape
    assert sum(x.chunks[0]) == M
    assert sum(x.chunks[1]) == K
    assert (len(x.chunks[0]), len(x.chunks[1])) == (rows, cols)
    assert x.nbytes == sum(x.blocks[i, j].nbytes for i in range(rows) for j in range(cols))
    assert repr(x).startswith("<sudare stored (70, 90) float64 up to 1, ")
    edge = x.chunks[0][0]
    part = x[edge:, :]
    assert part.shape == (M - edge, K)
    assert part.blocks.shape == (rows - 1, cols)
    assert part.block_bytes(0, 0) == x.block_bytes(1, 0) == x.blocks[1, 0].block_bytes(0, 0)
    assert x.blocks[-1].shape == (x.chunks[0][-1], K)
    assert "part of a sudare store" in repr(part)
    for wrong in (slice(1, None), slice(0, edge - 1), slice(None, None, 2), slice(3, 3)):
        with pytest.raises(sd.ShapeError, match="along its blocks"):
            x[wrong]
    with pytest.raises(sd.ShapeError, match="no block"):
        x.blocks[rows, 0]
    with pytest.raises(sd.UnsupportedError, match="whole"):
        part.load()
    with pytest.raises(sd.UnsupportedError, match="no server"):
        x @ x
    with pytest.raises(sd.UnsupportedError, match="stored one"):
        x @ a
    assert pickle.loads(pickle.dumps(x)).digest == x.digest
    with pytest.raises(sd.UnsupportedError, match="encrypted"):
        np.asarray(x)


def test_damage_and_what_is_no_store(world: tuple[sd.Plan, sd.Client, sd.Server], tmp_path: Path) -> None:
    _, client, server = world
    with pytest.raises(sd.FormatError, match="not a store"):
        sd.open(tmp_path / "nothing")
    x = sd.store(tmp_path / "a.sudare", values(M, K), client=client, name="A")
    y = sd.store(tmp_path / "b.sudare", values(K, N), client=client, name="B")
    shard = tmp_path / "a.sudare/blocks/c/0/0/0"
    data = bytearray(shard.read_bytes())
    data[5000] ^= 1
    shard.write_bytes(data)
    with pytest.raises(sd.FormatError, match="damaged"):
        x.verify()
    with pytest.raises(sd.FormatError):
        (x.bind(server) @ y).save(tmp_path / "c.sudare", memory="1 GB")
    with pytest.raises(sd.FormatError, match="not finished"):
        sd.open(tmp_path / "c.sudare")
    with pytest.raises(sd.SudareError, match="exists already"):
        sd.store(tmp_path / "a.sudare", values(M, K), client=client, name="A")
    for wrong in ("8 QB", "much", -1, 2.5):
        with pytest.raises(sd.InputError, match="memory"):
            (y.bind(server) @ y).save(tmp_path / "d.sudare", memory=wrong)  # type: ignore[arg-type]


def test_keys_stay_in_their_file(tmp_path: Path) -> None:
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((8, 8)), B=sd.spec((8, 8)), error=1e-4, method="jiang-bsgs")
    client = sd.Client(plan, threads=2)
    server = client.server()
    assert server.key_bytes > 10**6
    path = tmp_path / "eval.keys"
    path.write_bytes(server.to_bytes())
    there = sd.Server.open(plan, path, memory="1 MB")
    assert there.key_memory == 10**6
    assert server.key_memory is None
    assert there.key_bytes == 0, "nothing is read yet"
    assert "on disk, 1.0 MB held at most" in repr(there)
    assert "on disk" in there._repr_html_()
    a, b = client.encrypt(values(8, 8), "A"), client.encrypt(values(8, 8), "B")
    assert (there.bind(a) @ there.bind(b)).to_bytes() == (server.bind(a) @ server.bind(b)).to_bytes()
    assert there.to_bytes() == path.read_bytes()
    # Damaged: refused by the operation that asks for the key; of another length, at once.
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:])
    damaged = sd.Server.open(plan, path, memory=0)
    with pytest.raises(sd.FormatError, match=r"could not be loaded.*eval\.keys"):
        damaged.bind(a) @ damaged.bind(b)
    path.write_bytes(whole[:-1])
    with pytest.raises(sd.FormatError):
        sd.Server.open(plan, path, memory="1 GB")
    with pytest.raises(FileNotFoundError):
        sd.Server.open(plan, tmp_path / "none", memory="1 GB")
