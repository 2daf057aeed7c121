"""Dask arrays of encrypted blocks: the bytes of one machine, whatever the tiles, threads and processes."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sudare as sd

pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

M, K, N = 300, 200, 260


class World:
    """A plan with room for sums, matrices in stores, and the product in one piece."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = sd.plan(
            lambda A, B: A @ B,
            A=sd.spec((M, K)),
            B=sd.spec((K, N)),
            error=1e-3,
            method="coefficient",
        )
        self.client = sd.Client(self.plan, threads=1)
        self.server = self.client.server()
        rng = np.random.default_rng(0)
        self.a, self.b = rng.uniform(-1, 1, (M, K)), rng.uniform(-1, 1, (K, N))
        for name, x in (("A", self.a), ("B", self.b)):
            sd.store(folder / name, x, client=self.client, name=name)
        self.expected = (self.open("A").load() @ self.open("B").load()).to_bytes()

    def open(self, name: str) -> sd.StoredMatrix:
        return sd.open(self.folder / name, server=self.server)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("dask"))


@pytest.mark.parametrize("tile", [(1, 1), (2, 3), (100, 100)])
def test_a_product_by_tiles_has_the_bytes_of_one_piece(world: World, tile: tuple[int, int]) -> None:
    x = sd.dask.array(world.open("A"), tile)
    y = sd.dask.array(world.open("B"), tile[::-1] if tile == (2, 3) else tile)
    if x.chunks[1] != y.chunks[0]:
        y = sd.dask.array(world.open("B"), (tile[1], tile[0]))
    z = x @ y
    assert z.shape == (M, N)
    # One task for a tile of the result: the whole contraction is in it.
    tasks = z.numblocks[0] * z.numblocks[1]
    assert len(z.dask.layers[z.name]) == tasks
    found = z.compute(scheduler="threads")
    assert found.load(world.plan).to_bytes() == world.expected
    assert np.abs(world.client.decrypt(found) - world.a @ world.b).max() < 1e-3
    assert sd.matmul(x, y).compute(scheduler="synchronous").load(world.plan).to_bytes() == world.expected


def test_tasks_of_stores_stand_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler hands them out one by one: they depend on nothing, and a process opens each store once."""
    x, y = sd.dask.array(world.open("A"), (2, 2)), sd.dask.array(world.open("B"), (2, 2))
    z = x @ y
    assert z.dask.dependencies[z.name] == set()
    opened: list[str] = []
    real = sd._stored.open_store

    def counted(path: str) -> sd.StoredMatrix:
        opened.append(path)
        return real(path)

    monkeypatch.setattr(sd._stored, "open_store", counted)
    sd._stored._opened.cache_clear()
    parts = [pickle.loads(pickle.dumps(world.open("A").blocks[i, :])) for i in (0, 1)]
    assert [part.blocks.shape[0] for part in parts] == [1, 1]
    assert z.compute(scheduler="threads").load(world.plan).to_bytes() == world.expected
    assert len(opened) <= 3
    # Of operands that are computed it waits for these.
    late = (x + x) @ y
    assert late.dask.dependencies[late.name] == {(x + x).name}


def test_sums(world: World) -> None:
    x, y = sd.dask.array(world.open("A"), (2, 2)), sd.dask.array(world.open("B"), (2, 2))
    twice = (x + x).compute(scheduler="threads")
    assert np.abs(world.client.decrypt(twice) - 2 * world.a).max() < 1e-3
    for axis in (0, 1, -1, None):
        total = x.sum(axis)
        wanted = world.a.sum(axis)
        assert total.shape == wanted.shape
        shown = world.client.decrypt(total.compute(scheduler="threads"))
        assert np.abs(shown - wanted).max() < 1e-2, axis
    # A plan has room for its product alone: what the modulus might not hold is refused, not wrong.
    with pytest.raises(sd.PrecisionError, match="does not fit"):
        (x @ y).sum(axis=0).compute(scheduler="threads")
    with pytest.raises(sd.PlanError, match="not a value of the plan"):
        twice.load(world.plan)
    with pytest.raises(sd.InputError, match="axis"):
        x.sum(2)
    with pytest.raises(sd.UnsupportedError):
        x.sum(0, keepdims=True)


def test_what_does_not_go_together(world: World) -> None:
    x, y = sd.dask.array(world.open("A"), (2, 2)), sd.dask.array(world.open("B"), (1, 2))
    if x.chunks[1] != y.chunks[0]:
        with pytest.raises(sd.ShapeError, match="contraction"):
            _ = x @ y
    with pytest.raises(sd.ShapeError, match="same chunks"):
        _ = x + y
    with pytest.raises(sd.UnsupportedError, match="encrypted one"):
        _ = x @ np.eye(K)
    with pytest.raises(sd.InputError, match="tile"):
        sd.dask.array(world.open("A"), (0, 1))
    with pytest.raises(sd.UnsupportedError, match="stored matrix"):
        sd.dask.array(np.eye(3))
    # Elements are nobody's to see, and what is only read stays a store.
    with pytest.raises(sd.UnsupportedError):
        np.asarray(x.sum(0).compute(scheduler="synchronous"))
    assert isinstance(x.compute(scheduler="synchronous"), sd.StoredMatrix)


def test_tiles_travel_without_a_copy(world: World) -> None:
    tile = (sd.dask.array(world.open("A"), (2, 2)) + sd.dask.array(world.open("A"), (2, 2))).blocks[0, 0]
    held = tile.compute(scheduler="synchronous")
    buffers: list[Any] = []
    head = pickle.dumps(held, protocol=5, buffer_callback=buffers.append)
    assert len(head) < 5000
    assert sum(b.raw().nbytes for b in buffers) == held.nbytes
    back = pickle.loads(head, buffers=buffers)
    for ours, theirs in zip(held._blocks, back._blocks, strict=True):
        assert np.shares_memory(ours, theirs)
    assert sys.getsizeof(held) >= held.nbytes
    # A stored part is its path and its digest.
    part = world.open("A").blocks[0, :]
    assert len(pickle.dumps(part)) < 1000
    assert pickle.loads(pickle.dumps(part)).block_bytes(0, 0) == part.block_bytes(0, 0)


def test_a_stored_result_is_decrypted_by_blocks(world: World) -> None:
    a = world.open("A")
    edge = a.chunks[0][0]
    assert np.abs(world.client.decrypt(a[:edge, :]) - world.a[:edge]).max() < 1e-3
    assert np.abs(world.client.decrypt(a) - world.a).max() < 1e-3


def test_a_store_that_was_replaced_is_refused(world: World, tmp_path: Path) -> None:
    a = sd.store(tmp_path / "a", world.a, client=world.client, name="A")
    sent = pickle.dumps(a)
    (tmp_path / "a").rename(tmp_path / "before")
    sd.store(tmp_path / "a", world.a, client=world.client, name="A")
    with pytest.raises(sd.FormatError, match="another store"):
        pickle.loads(sent)


def test_without_keys_it_says_so(world: World) -> None:
    from sudare import _dask

    x, y = sd.dask.array(world.open("A"), (9, 9)), sd.dask.array(world.open("B"), (9, 9))
    z = x @ y
    saved = dict(_dask._servers)
    _dask._servers.clear()
    try:
        with pytest.raises(sd.MissingKeyError, match=r"register_plugin.*build the product again"):
            z.compute(scheduler="synchronous")
    finally:
        _dask._servers.update(saved)
    # Dask remembers what failed by its name: with keys the same product has another.
    keys = sd.dask.Keys(world.server, world.folder / "keys again")
    assert (x @ y).name != z.name
    keys._make()
    assert (x @ y).compute(scheduler="synchronous").load(world.plan).to_bytes() == world.expected


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_with_a_killed_worker(world: World) -> None:
    """Two processes work, one of which is killed: the keys come to the one that takes its place."""
    rounds = int(os.environ.get("SUDARE_KILLS", "1"))
    with (
        # Dask blames a task that was under way in four workers that died, however they died.
        dask.config.set({"distributed.scheduler.allowed-failures": 2 * rounds}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.register_plugin(sd.dask.Keys(world.server, world.folder / "keys", threads=1))
        for _ in range(rounds):
            x, y = sd.dask.array(world.open("A"), (1, 2)), sd.dask.array(world.open("B"), (2, 1))
            future = client.compute(x @ y)
            time.sleep(random.uniform(0.0, 0.3))
            victim = next(iter(cluster.workers.values()))
            os.kill(victim.pid, signal.SIGKILL)
            assert future.result(timeout=120).load(world.plan).to_bytes() == world.expected
        del future
        # Tile by tile from the workers, put together here.
        assert (x @ y).compute().load(world.plan).to_bytes() == world.expected
        for axis in (0, None):
            total = world.client.decrypt(x.sum(axis).compute())
            assert np.abs(total - world.a.sum(axis)).max() < 1e-2
        assert isinstance(x.compute(), sd.StoredMatrix)


@pytest.mark.filterwarnings("ignore")
def test_tiles_are_spilled(world: World, tmp_path: Path) -> None:
    """A worker whose results are more than its share of memory has them on its disk."""
    settings = {
        "distributed.worker.memory.target": 0.01,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.spill-compression": False,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            memory_limit="512 MiB",
            local_directory=str(tmp_path),
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.register_plugin(sd.dask.Keys(world.server, world.folder / "keys", threads=1))
        x, y = sd.dask.array(world.open("A"), (1, 9)), sd.dask.array(world.open("B"), (9, 1))
        product = client.persist(x @ y)
        distributed.wait(product)
        (worker,) = cluster.workers.values()
        assert worker.data.disk, "nothing was spilled"
        on_disk = sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file())
        assert on_disk >= 0.5 * len(world.expected)
        assert client.compute(product).result().load(world.plan).to_bytes() == world.expected


def _certificate(folder: Path) -> str:
    """A certificate for this machine with its key, in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    made, key = folder / "cert.pem", folder / "key.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        [openssl, *words.split(), "-keyout", str(key), "-out", str(made)], check=True, capture_output=True
    )
    both = folder / "both.pem"
    both.write_text(key.read_text() + made.read_text())
    return str(both)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_over_tls(world: World, tmp_path: Path) -> None:
    """Keys and tiles over TLS with certificates on both sides; who has none is not let in."""
    pem = _certificate(tmp_path)
    roles = {
        f"tls_{role}_{part}": pem for role in ("client", "scheduler", "worker") for part in ("cert", "key")
    }
    security = distributed.Security(tls_ca_file=pem, require_encryption=True, **roles)
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=True,
            protocol="tls",
            security=security,
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster, security=security) as client,
    ):
        assert cluster.scheduler_address.startswith("tls://")
        client.register_plugin(sd.dask.Keys(world.server, world.folder / "keys", threads=1))
        x, y = sd.dask.array(world.open("A"), (9, 9)), sd.dask.array(world.open("B"), (9, 9))
        assert client.compute(x @ y).result().load(world.plan).to_bytes() == world.expected
        with pytest.raises((OSError, TimeoutError, TypeError)):
            distributed.Client(cluster.scheduler_address, timeout=2)
