"""Encrypted matrices on many machines: dask arrays whose chunks are windows of encrypted blocks.

`array(x)` is a dask array over a stored matrix; `x @ y`, `x + y` and `x.sum(axis)` are tasks on tiles, each
with its whole contraction and one relinearisation in Rust. Tasks read their blocks from the stores, which
all machines have to see under the same path, and find the evaluation keys that `Keys` brought to their
machine once.

Whoever reaches a scheduler runs code on its workers: keep it in a network of your own, with TLS
(`distributed.Security`). Nothing secret is there in any case: stores, evaluation keys and tiles are a
server's.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import os
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

try:
    import dask
    import dask.array as da
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph
except ImportError as missing:
    raise ImportError("this needs dask: pip install 'sudare[dask]'") from missing
try:
    from distributed.diagnostics.plugin import WorkerPlugin
except ImportError:
    WorkerPlugin = object

from . import _core
from ._array import UFUNCS, Operation, Operators
from ._errors import FormatError, InputError, MissingKeyError, ShapeError, UnsupportedError
from ._plan import Plan
from ._session import Server
from ._stored import StoredMatrix, reopened
from ._tile import ADDED, COLS, ROWS, About, EncryptedTile, join

__all__ = ["EncryptedArray", "Keys", "array"]

Part: TypeAlias = "StoredMatrix | EncryptedTile"

# The servers of this process, by plan and key. Those of `Keys` stay; others as long as an array needs them.
_servers: weakref.WeakValueDictionary[tuple[str, str], Server] = weakref.WeakValueDictionary()
_kept: dict[tuple[str, str], Server] = {}
_making = threading.Lock()
# Digests of the keys that were registered from this process.
_registered: set[str] = set()


def _server(about: About) -> Server:
    """The server of this process for the blocks of a matrix."""
    name = about.plan, about.key
    found = _kept.get(name) or _servers.get(name)
    if found is None:
        raise MissingKeyError(
            f"there are no evaluation keys of key {about.key} here; register them once for all workers: "
            "client.register_plugin(sudare.dask.Keys(server, path)), and build the product "
            "again: dask keeps the failure of this one"
        )
    return found


class Keys(WorkerPlugin):
    """Brings a server's evaluation keys to every worker of a cluster, also to those that come later.

    `client.register_plugin(Keys(server, path))`, with a dask client. The keys are written to `path`, unless
    they are there, which every machine has to see; a worker reads them once, and compares them with their
    digest. `threads` are those of each worker (0: one for each processor): one worker a machine with
    `nthreads=1` is enough.
    """

    def __init__(self, server: Server, path: str | os.PathLike[str], *, threads: int = 0) -> None:
        data = server.to_bytes()
        self.digest = hashlib.sha256(data).hexdigest()
        self.name = f"sudare-keys-{self.digest}"
        self.path, self.threads = os.path.abspath(path), threads
        self._plan, self._key = server._planned.to_json(), server.key_id
        _registered.add(self.digest)
        if not Path(self.path).exists():
            _core.write_file(self.path, data, False)

    async def setup(self, worker: Any) -> None:
        """What a worker does when it starts, or when this is registered."""
        await asyncio.to_thread(self._make)

    def _make(self) -> None:
        plan = Plan.from_json(self._plan)
        name = plan.hash, self._key
        # Workers in one process share the keys.
        with _making:
            if name in _kept:
                return
            data = Path(self.path).read_bytes()
            if hashlib.sha256(data).hexdigest() != self.digest:
                raise FormatError(f"{self.path} holds other keys than were registered; register them again")
            _kept[name] = Server.from_bytes(plan, data, self.threads)


@dataclass(frozen=True)
class Window:
    """A chunk of a stored matrix in the words that travel: nothing is opened before a task needs it."""

    path: str
    digest: str
    spans: tuple[tuple[int, int], ...]

    def open(self) -> StoredMatrix:
        """The chunk, of a store that every process opens once."""
        return reopened(self.path, self.digest, self.spans)


@functools.lru_cache(maxsize=64)
def _layouts(plan: Plan) -> list[tuple[int, tuple[int, int], tuple[int, int], tuple[int, int]]]:
    return _core.layouts(plan._core)


def _product(some: list[Part | Window], others: list[Part | Window]) -> EncryptedTile:
    """A task: a row of parts times a column of parts."""
    left, right = ([x.open() if isinstance(x, Window) else x for x in side] for side in (some, others))
    about = _about(left[0])
    server = _server(about)
    plan = server._planned
    blocks = _core.matmul_parts(server._core, [x._given for x in left], [y._given for y in right])
    node, shape, grid, block = _layouts(plan)[2]
    made = About(about.plan, about.key, node, shape, grid, block)
    return EncryptedTile(made, 0, (left[0]._window[0], right[0]._window[1]), tuple(blocks))


def _sum_of_two(x: Part, y: Part) -> EncryptedTile:
    """A task: two parts added block by block."""
    about = _about(x)
    blocks = _core.add_parts(_server(about)._core, x._given, y._given)
    return EncryptedTile(about, x._form | ADDED, x._window, tuple(blocks))


def _folded(x: Part, form: int) -> EncryptedTile:
    """A task: a part's blocks added up along an axis."""
    about = _about(x)
    blocks = _core.sum_part(_server(about)._core, x._given, form == ROWS)
    down, across = x._window
    window = (range(1), across) if form == ROWS else (down, range(1))
    return EncryptedTile(about, x._form | form, window, tuple(blocks))


def _total(parts: Any) -> EncryptedTile:
    """A task: the sums of all parts along an axis, added."""
    first, *rest = parts if isinstance(parts, list) else [parts]
    total: EncryptedTile = functools.reduce(_sum_of_two, rest, first)
    return total


def _gathered(parts: Any) -> Part:
    """All chunks as one: what is only read stays a store."""
    one = parts
    while isinstance(one, (list, tuple)):
        one = one[0]
    if isinstance(one, EncryptedTile):
        return join(parts)
    first, last = one._window, parts[-1][-1]._window
    whole: StoredMatrix = one
    return whole._part(range(first[0].start, last[0].stop), range(first[1].start, last[1].stop))


def _about(x: Part) -> About:
    return x.about if isinstance(x, EncryptedTile) else x._about


class Cluster:
    """A cluster as the place of operations: each is tasks on chunks."""

    def apply(self, operation: Operation, *operands: EncryptedArray) -> EncryptedArray:
        """A matrix product, a sum of two arrays, or the sum over an axis; the plan has the first alone."""
        if operation["op"] == "sum":
            return self._sum(operands[0], operation["axis"])
        done = {"matmul": self._matmul, "add": self._add}
        return done[operation["op"]](*operands)

    @staticmethod
    def _matmul(x: EncryptedArray, y: EncryptedArray) -> EncryptedArray:
        if x.ndim != 2 or y.ndim != 2 or x.chunks[1] != y.chunks[0]:
            raise ShapeError(
                f"chunks {x.chunks[1:]} and {y.chunks[:1]} along the contraction do not go together; "
                "make both arrays with the same number of blocks a tile there"
            )
        # Chunks of stores go with the tasks: no task depends on another, so that a scheduler hands out the
        # next one to whoever is free, and nothing but tiles of the result travels between workers.
        sides = (x, y)
        left, right = (
            [[side._part(i, j) for j in range(side.numblocks[1])] for i in range(side.numblocks[0])]
            for side in sides
        )
        # A product that failed without keys is remembered by its name: with others it has another.
        name = f"sudare-matmul-{tokenize(x.name, y.name, sorted(_registered))}"
        graph = {
            (name, i, k): (_product, row, [line[k] for line in right])
            for i, row in enumerate(left)
            for k in range(y.numblocks[1])
        }
        computed = [side for side in sides if side._sudare_windows is None]
        layers = HighLevelGraph.from_collections(name, graph, dependencies=computed)
        chunks = x.chunks[0], y.chunks[1]
        return EncryptedArray(layers, name, chunks, x._meta, x._sudare_server)

    @staticmethod
    def _add(x: EncryptedArray, y: EncryptedArray) -> EncryptedArray:
        if not isinstance(y, EncryptedArray) or x.chunks != y.chunks:
            raise ShapeError("an encrypted array is added to an encrypted one of the same chunks")
        axes = "ij"[: x.ndim]
        made = da.blockwise(
            _sum_of_two, axes, x, axes, y, axes,
            align_arrays=False, dtype=np.float64, meta=x._meta, token="sudare-add",
        )  # fmt: skip
        return x._of(made)

    @staticmethod
    def _sum(x: EncryptedArray, axis: int) -> EncryptedArray:
        # Of one axis that is left the other was summed over before.
        form = (ROWS, COLS)[axis] if x.ndim == 2 else (COLS if x._meta._form & ROWS else ROWS)
        meta = EncryptedTile(x._meta.about, x._meta._form | form, x._meta._window, ())
        axes = "ij"[: x.ndim]
        folded = da.blockwise(
            _folded, axes, x, axes, form=form, adjust_chunks={axes[axis]: 1},
            dtype=np.float64, meta=x._meta, token="sudare-fold",
        )  # fmt: skip
        kept = axes.replace(axes[axis], "")
        made = da.blockwise(
            _total, kept, folded, axes, concatenate=False, dtype=np.float64, meta=meta, token="sudare-sum"
        )
        return x._of(made)


class EncryptedArray(Operators, da.Array):
    """A dask array whose chunks are windows of encrypted blocks.

    `@`, `+` and `sum` are tasks on them; anything else that would need to see values is refused by the
    chunks. `compute()` gives an `EncryptedTile`, for `client.decrypt`.
    """

    __slots__ = ("_sudare_server", "_sudare_windows")
    _computes: ClassVar = {name: UFUNCS[name] for name in ("matmul", "add")}
    _sudare_server: Server | None
    # Where its chunks are, of an array that is a stored matrix.
    _sudare_windows: dict[tuple[int, int], Window] | None

    def __new__(
        cls, graph: Any, name: str, chunks: Any, meta: Any, server: Server | None, windows: Any = None
    ) -> EncryptedArray:
        """Made by `array` and by operations."""
        made: EncryptedArray = super().__new__(cls, graph, name, chunks, np.float64, meta)
        made._sudare_server, made._sudare_windows = server, windows
        return made

    def _of(self, other: da.Array) -> EncryptedArray:
        return EncryptedArray(other.dask, other.name, other.chunks, other._meta, self._sudare_server)

    def __reduce__(self) -> Any:
        # Its server stays: workers have the keys from `Keys`.
        return EncryptedArray, (self.dask, self.name, self.chunks, self._meta, None, self._sudare_windows)

    def compute(self, **options: Any) -> Any:
        """All tiles as one `EncryptedTile`; of an array that is a stored matrix, a `StoredMatrix`.

        On a cluster each tile comes from the worker that made it, and none by way of another worker.
        """
        if options or dask.config.get("scheduler", None) != "dask.distributed":
            return super().compute(**options)
        from distributed import default_client, futures_of

        cluster = default_client()
        tiles = cluster.gather({future.key: future for future in futures_of(cluster.persist(self))})

        def placed(keys: Any) -> Any:
            return [placed(key) for key in keys] if isinstance(keys, list) else tiles[keys]

        return _gathered(placed(self.__dask_keys__()))

    def __dask_postcompute__(self) -> Any:
        return _gathered, ()

    def _rebuild(self, dsk: Any, *, rename: Any = None) -> EncryptedArray:
        name = rename.get(self.name, self.name) if rename else self.name
        return EncryptedArray(dsk, name, self.chunks, self._meta, self._sudare_server)

    @property
    def _place(self) -> Cluster:
        return Cluster()

    def _product(self, other: Any, *, reflected: bool = False) -> EncryptedArray:
        if not isinstance(other, EncryptedArray):
            kind = type(other).__name__
            raise UnsupportedError(f"an encrypted array is multiplied by an encrypted one, not {kind}")
        return self._place.apply({"op": "matmul"}, self, other)

    def _elementwise(self, operation: str, other: Any, *, reflected: bool = False) -> EncryptedArray:
        return self._place.apply({"op": "add"}, self, other)

    def _part(self, i: int, j: int) -> Any:
        """A chunk as a task takes it: where it is, or the name of what computes it."""
        windows = self._sudare_windows
        return (self.name, i, j) if windows is None else windows[i, j]

    def sum(self, axis: int | None = None, **refused: Any) -> EncryptedArray:
        """The sum over an axis, or over all.

        Blocks are added there; what is left to add up within a block is added after decryption.
        """
        if any(x not in (None, False) for x in refused.values()):
            raise UnsupportedError("a sum of an encrypted array takes an axis and nothing else")
        if axis is None:
            made = self
            while made.ndim:
                made = made.sum(0)
            return made
        if not isinstance(axis, int) or not -self.ndim <= axis < self.ndim:
            raise InputError(f"axis is one of {self.ndim} axes, not {axis!r}")
        return self._place.apply({"op": "sum", "axis": axis % self.ndim}, self)


def array(x: StoredMatrix, tile: tuple[int, int] = (8, 8)) -> EncryptedArray:
    """A dask array over a stored matrix, in chunks of so many rows and columns of blocks.

    Nothing is read now: a task reads the blocks that it needs, from the path that `x` was opened by. A task
    should take 100 ms or more, and larger tiles read less: every task reads a row of tiles and a column.
    """
    if not isinstance(x, StoredMatrix):
        kind = type(x).__name__
        raise UnsupportedError(f"a dask array is made of a stored matrix, not of {kind}; see sudare.store")
    sizes = tuple(tile)
    if len(sizes) != 2 or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise InputError(f"tile is two whole numbers of blocks, not {tile!r}")
    cuts = [
        [window[i : i + n] for i in range(0, len(window), n)]
        for window, n in zip(x._window, sizes, strict=True)
    ]
    chunks = tuple(tuple(sum(x._about.chunks(cut, axis)) for cut in along) for axis, along in enumerate(cuts))
    server = x._home.server
    if server is not None:
        _servers[x._about.plan, x._about.key] = server
    path = os.path.abspath(x.path)
    name = f"sudare-stored-{tokenize(x.digest, x._window, sizes)}"
    windows = {
        (i, j): Window(path, x.digest, ((down.start, down.stop), (across.start, across.stop)))
        for i, down in enumerate(cuts[0])
        for j, across in enumerate(cuts[1])
    }
    graph = {(name, *at): (Window.open, window) for at, window in windows.items()}
    layers = HighLevelGraph.from_collections(name, graph, dependencies=[])
    return EncryptedArray(layers, name, chunks, EncryptedTile(x._about, 0, x._window, ()), server, windows)
