"""A product on a cluster of two processes on this machine, one of which is killed at a random moment.

Operands are in stores; a task computes a tile of the result with the whole contraction in it; the keys come
to each process once, also to the one that takes a killed one's place. The bytes have to be those of one
process, and the cluster has to take little longer than the same tiles in this one.

    python demo_dask.py [KILLS [SIDE]]
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sudare as sd
from distributed import Client, LocalCluster, wait

# Tiles along each side of the result, and blocks along the contraction of a chunk.
TILES = 8
WANTED_ERROR = 1e-3
# Measurements, each here and on the cluster in turn.
ROUNDS = 3


def seconds(work: Callable[[], Any]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def tiles(x: sd.StoredMatrix, y: sd.StoredMatrix) -> tuple[sd.dask.EncryptedArray, sd.dask.EncryptedArray]:
    """Dask arrays that make TILES × TILES tasks, each with the contraction in one chunk."""
    down, across, terms = x.blocks.shape[0], y.blocks.shape[1], x.blocks.shape[1]
    return (
        sd.dask.array(x, (-(-down // TILES), terms)),
        sd.dask.array(y, (terms, -(-across // TILES))),
    )


def main() -> None:
    """The whole demonstration."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    side = int(sys.argv[2]) if len(sys.argv) > 2 else 768
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-1, 1, (side, side)), rng.uniform(-1, 1, (side, side))
    plan = sd.plan(
        lambda A, B: A @ B,
        A=sd.spec(a.shape), B=sd.spec(b.shape),
        error=WANTED_ERROR, method="coefficient", memory=10**12,
    )  # fmt: skip
    client = sd.Client(plan, threads=2)
    server = client.server()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, x in (("A", a), ("B", b)):
            sd.store(folder / label, x, client=client, name=label)
        left, right = (sd.open(folder / label, server=server) for label in "AB")
        one = (left @ right).save(folder / "one", memory="8 GB").load().to_bytes()
        x, y = tiles(left, right)
        product = x @ y
        count = int(np.prod(product.numblocks))
        print(f"operands    {(left.nbytes + right.nbytes) / 1e6:.0f} MB in stores; {count} tiles")
        here = product.compute(scheduler="synchronous")
        if here.load(plan).to_bytes() != one:
            sys.exit("tiles in this process have other bytes than the product in one piece")
        # Half of dask's functions have types.
        options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        local: Any = LocalCluster
        asking: Any = Client
        finished: Any = wait
        # Results come from the workers: by way of the scheduler they travel twice.
        straight = {"direct_to_workers": True}
        with local(processes=True, **options) as cluster, asking(cluster, **straight) as dask:
            dask.register_plugin(sd.dask.Keys(server, folder / "keys", threads=1))
            # The first one starts the processes' tables; a result that nobody holds is computed again.
            done = product.compute()
            if done.load(plan).to_bytes() != one:
                sys.exit("tiles on the cluster have other bytes than the product in one piece")
            # In turn, since others may load the machine.
            works: list[Callable[[], Any]] = [
                lambda: product.compute(scheduler="synchronous"),
                product.compute,
                lambda: finished(dask.persist(product)),
            ]
            rounds = [[seconds(work) for work in works] for _ in range(ROUNDS)]
            here_s, there_s, left_s = map(statistics.median, zip(*rounds, strict=True))
            print(f"here        {here_s:.2f} s on two threads, {2e3 * here_s / count:.0f} ms of one a tile")
            print(f"cluster     {there_s:.2f} s on two processes of one thread: {there_s / here_s - 1:+.1%}")
            print(
                f"            {left_s:.2f} s with the tiles left on their workers: {left_s / here_s - 1:+.1%}"
            )
            for kill in range(kills):
                future = dask.compute(product)
                time.sleep(random.uniform(0, there_s))
                victim = random.choice(list(cluster.workers.values()))
                os.kill(victim.pid, signal.SIGKILL)
                done = future.result()
                if done.load(plan).to_bytes() != one:
                    sys.exit("after a kill the product has other bytes")
                print(f"killed      {kill + 1} of {kills}: the same bytes")
        error = np.abs(client.decrypt(done) - a @ b).max()
        print(f"error       {error:.1e} against NumPy, {WANTED_ERROR:.0e} allowed")
        if not error < WANTED_ERROR:
            sys.exit("the product is wrong")


if __name__ == "__main__":
    main()
