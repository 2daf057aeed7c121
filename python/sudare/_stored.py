"""Encrypted matrices in stores: larger than memory, opened without being read."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from . import _core, _html
from ._array import plain
from ._errors import FormatError, InputError, PlanError, ShapeError, UnsupportedError
from ._keys import Home
from ._matrix import Encrypted, planned, rows
from ._opaque import Opaque
from ._plan import Plan
from ._progress import progress
from ._tile import About, Given
from ._values import count

if TYPE_CHECKING:
    from ._index import IndexServer, IndexTable
    from ._session import Client, PublicClient, Server

__all__ = ["StoredMatrix", "StoredProduct", "open_store", "store"]

PathLike: TypeAlias = "str | os.PathLike[str]"

UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
SIZE = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def size(value: int | str, name: str) -> int:
    """A number of bytes, or a size as "8 GB"."""
    if not isinstance(value, str):
        return count(value, name)
    found = SIZE.fullmatch(value)
    if found is None:
        raise InputError(f'{name} is a number of bytes or a size as "8 GB" or "512 MiB", not {value!r}')
    return int(float(found[1]) * UNITS[(found[2] or "").lower()])


class Blocks:
    """The blocks of a stored matrix: `x.blocks[i, j]` is one, `x.blocks[i:j, :]` some."""

    def __init__(self, of: StoredMatrix) -> None:
        self._of = of

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of blocks."""
        down, across = self._of._window
        return len(down), len(across)

    def __getitem__(self, index: Any) -> StoredMatrix:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > 2 or not all(isinstance(i, (int, slice)) for i in index):
            raise ShapeError("blocks are picked by one or two whole numbers or slices: x.blocks[i, j]")
        index = (*index, slice(None))[:2]
        down, across = (_picked(w, i, "block") for w, i in zip(self._of._window, index, strict=True))
        return self._of._part(down, across)


def _picked(window: range, index: int | slice, what: str) -> range:
    """A run of a range."""
    if isinstance(index, slice):
        found = window[index]
        if found.step != 1 or not found:
            raise ShapeError(f"a slice of {what}s takes at least one, with step 1")
        return found
    try:
        return range(window[index], window[index] + 1)
    except IndexError:
        raise ShapeError(f"there is no {what} {index}; there are {len(window)}") from None


class StoredMatrix(Opaque):
    """An encrypted matrix in a store, or a part of one along its blocks; read when it is needed.

    Made by `sudare.open` and `sudare.store`. `A @ B` is a product that waits for its `save`. The store
    brings its plan along; nothing in it is secret.
    """

    # The value itself: see `EncryptedTile`.
    _form = 0

    def __init__(
        self,
        core: _core.Stored,
        path: str,
        home: Server | Home[Server] | None,
        window: tuple[range, range] | None = None,
    ) -> None:
        self._core, self._path = core, path
        self._home: Home[Server] = home if isinstance(home, Home) else Home(home)
        down, across = core.grid
        self._window = window or (range(down), range(across))

    @property
    def path(self) -> str:
        """Where the store is."""
        return self._path

    @property
    def plan(self) -> Plan:
        """The plan that it belongs to."""
        return Plan(self._core.plan)

    @property
    def digest(self) -> str:
        """Names the contents of the whole store: two with one digest are the same."""
        return self._core.digest

    @property
    def key_id(self) -> str:
        """The public name of the secret key that it is under."""
        return self._core.key_id

    @property
    def blocks(self) -> Blocks:
        """Its blocks."""
        return Blocks(self)

    @property
    def _about(self) -> About:
        """What its parts are parts of."""
        found = self._core
        return About(
            found.plan.hash_hex(), found.key_id, found.node, found.shape, found.grid, self._block_shape
        )

    @property
    def _given(self) -> Given:
        down, across = self._window
        spans = (down.start, down.stop), (across.start, across.stop)
        return self._core.node, self._form, *spans, self._core, []

    @property
    def _whole(self) -> bool:
        return tuple(map(len, self._window)) == self._core.grid

    @property
    def _parts(self) -> bool:
        """Whether it has blocks of rows and columns."""
        return self._core.block_shape is not None and self._core.batch == 1

    @property
    def _block_shape(self) -> tuple[int, int]:
        found = self._core.block_shape
        if found is None or self._core.batch > 1:
            raise UnsupportedError("this matrix has no blocks of rows and columns; use it whole")
        return found

    @property
    def chunks(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Rows of each row of blocks, and columns of each column, as dask counts them."""
        sides = zip(self._window, self._block_shape, self._core.shape, strict=True)
        down, across = (tuple(min(b, n - b * i) for i in window) for window, b, n in sides)
        return down, across

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that decryption gives. A batch comes first."""
        if not self._whole:
            return sum(self.chunks[0]), sum(self.chunks[1])
        batch = (self._core.batch,) if self._core.batch > 1 else ()
        return (*batch, *self._core.shape)

    @property
    def ndim(self) -> int:
        """Axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its blocks on the disk."""
        down, across = self._window
        return len(down) * len(across) * self._core.block_bytes

    def _part(self, down: range, across: range) -> StoredMatrix:
        return StoredMatrix(self._core, self._path, self._home, (down, across))

    def __getitem__(self, index: Any) -> StoredMatrix:
        """A part along blocks: slices that begin and end where blocks do."""
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > 2 or not all(isinstance(i, slice) for i in index):
            raise ShapeError("a stored matrix is cut by slices along its blocks, as x[0:64, :]; see x.chunks")
        index = (*index, slice(None))[:2]
        sides = zip(self.chunks, index, self._window, strict=True)
        down, across = (_along(chunks, part, window) for chunks, part, window in sides)
        return self._part(down, across)

    def block_bytes(self, row: int, col: int) -> bytes:
        """A block as it travels, checked: a container of one ciphertext.

        Raises `ShapeError` for a block that there is not, `FormatError` for a damaged one.
        """
        down, across = self._window
        return self._core.block(
            _picked(down, row, "row of blocks")[0], _picked(across, col, "column of blocks")[0]
        )

    def load(self) -> Encrypted:
        """All of it in memory, to compute with or to decrypt.

        Raises `UnsupportedError` for a matrix without a plan, `FormatError` for anything damaged.
        """
        if not self._whole:
            raise UnsupportedError(
                "a part of a matrix is no value of its plan; load the whole, or decrypt it: client.decrypt(x)"
            )
        return Encrypted(self._core.load(), self.plan, self._home)

    def verify(self) -> None:
        """Read everything and check every byte. Raises `FormatError` for one that is not as written."""
        self._core.verify()

    def bind(self, server: Server) -> StoredMatrix:
        """The same matrix, computed with by this server."""
        return StoredMatrix(self._core, self._path, server, self._window)

    def __matmul__(self, other: Any) -> StoredProduct:
        if not isinstance(other, StoredMatrix):
            raise UnsupportedError(
                f"a stored matrix is multiplied by a stored one, not by {type(other).__name__}; "
                "sudare.store(path, x) stores one, x.load() takes this one into memory"
            )
        if not (self._whole and other._whole):
            raise UnsupportedError("the plan multiplies whole matrices, not parts of them; give both whole")
        server = self._home.server or other._home.server
        if server is None:
            raise UnsupportedError(
                "these matrices are bound to no server; open them with server=…, or x.bind(server)"
            )
        return StoredProduct(self, other, server)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """`numpy.matmul` of two stored matrices; nothing else is lazy."""
        if (
            getattr(ufunc, "__name__", "") == "matmul"
            and method == "__call__"
            and isinstance(inputs[0], StoredMatrix)
        ):
            return inputs[0] @ inputs[1]
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def _repr_html_(self) -> str:
        return _html.stored(self)

    def __repr__(self) -> str:
        if self._whole:
            return repr(self._core)
        down, across = self.blocks.shape
        return f"<part of a sudare store {self.shape}, {down} × {across} blocks, {self.nbytes / 1e9:.2f} GB>"

    def __reduce__(self) -> tuple[Callable[..., StoredMatrix], tuple[Any, ...]]:
        """Its path and its digest: who unpickles it sees the same folder. For your own processes."""
        windows = tuple((window.start, window.stop) for window in self._window)
        return reopened, (os.path.abspath(self._path), self.digest, windows)


@functools.lru_cache(maxsize=64)
def _opened(path: str, digest: str) -> StoredMatrix:
    found = open_store(path)
    if found.digest != digest:
        raise FormatError(f"{path}: this is another store than the one that was sent; open that one")
    return found


def reopened(path: str, digest: str, windows: tuple[tuple[int, int], ...]) -> StoredMatrix:
    """A part of a store that has this digest, opened once in a process."""
    return _opened(path, digest)._part(*(range(*window) for window in windows))


def _along(chunks: tuple[int, ...], part: slice, window: range) -> range:
    """The blocks of a slice of elements, which has to begin and end where they do."""
    edges = [0]
    for chunk in chunks:
        edges.append(edges[-1] + chunk)
    start, stop, step = part.indices(edges[-1])
    if step != 1 or start not in edges or stop not in edges or start >= stop:
        raise ShapeError(
            f"slices of a stored matrix go along its blocks of {chunks[0]}, not {start}:{stop}:{step}"
        )
    return window[edges.index(start) : edges.index(stop)]


@dataclass(frozen=True)
class StoredProduct:
    """A product of stored matrices that is not computed yet: `(A @ B).save(path, memory="8 GB")`."""

    left: StoredMatrix
    right: StoredMatrix
    server: Server

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return (*self.left.shape[:-1], self.right.shape[-1])

    def schedule(self, path: PathLike, *, memory: int | str, resume: bool = False) -> dict[str, Any]:
        """What `save` would do: tiles, passes, bytes read and written, memory, seconds.

        Raises `PlanError` with the least memory that would do.
        """
        return dict(json.loads(self._scheduled(path, memory, resume)[1]))

    def explain(self, path: PathLike, *, memory: int | str, resume: bool = False) -> str:
        """The same for people."""
        return self._scheduled(path, memory, resume)[0]

    def _scheduled(self, path: PathLike, memory: int | str, resume: bool) -> tuple[str, str]:
        allowed = size(memory, "memory")
        return self.left._core.schedule(self.server._core, self.right._core, os.fspath(path), allowed, resume)

    def save(self, path: PathLike, *, memory: int | str, resume: bool = False) -> StoredMatrix:
        """Compute it into a new store, in `memory` bytes or as "8 GB"; bit by bit the product in memory.

        With `resume` an interrupted work goes on from its finished shards; a finished one is taken as it is.

        Raises `PlanError` if it cannot be done in so little memory, with the least that would do;
        `FormatError` for a damaged operand; `SudareError` for a name that is taken or a full disk.
        """
        allowed, name = size(memory, "memory"), os.fspath(path)
        with progress("multiplying") as report:
            core, _ = self.left._core.matmul(
                self.server._core, self.right._core, name, allowed, resume, report
            )
        return StoredMatrix(core, name, self.server)

    def __repr__(self) -> str:
        return f"<sudare product of stored matrices {self.shape}, not computed: save(path, memory=…)>"


@overload
def open_store(path: PathLike, *, server: IndexServer, memory: int | str | None = None) -> IndexTable: ...
@overload
def open_store(path: PathLike, *, server: Server | None = None) -> StoredMatrix: ...
def open_store(
    path: PathLike, *, server: Server | IndexServer | None = None, memory: int | str | None = None
) -> StoredMatrix | IndexTable:
    """Open a stored matrix, bound to a server if one is given; or an index's table, by its `IndexServer`.

    What it is is read and checked now, blocks when they are needed; of a table as many as `memory` holds
    ("8 GB").

    Raises `FormatError` for a folder that is none or is damaged, `UnsupportedError` for `memory` of a matrix.

    >>> f, A, B = lambda A, B: A @ B, sd.spec((2, 3)), sd.spec((3, 2))
    >>> plan = sd.plan(f, A=A, B=B, error=1e-4, method="coefficient")
    >>> client = sd.Client(plan)
    >>> path = os.path.join(folder, "a.sudare")
    >>> stored = sd.store(path, np.ones((2, 3)), client=client, name="A")
    >>> sd.open(path, server=client.server()).shape
    (2, 3)
    """
    from ._index import IndexServer

    name = os.fspath(path)
    if isinstance(server, IndexServer):
        return server.open(name, memory=memory)
    if memory is not None:
        raise UnsupportedError(
            "memory= is for an index's table, opened by its IndexServer; a product has a budget"
        )
    return StoredMatrix(_core.Stored.open(name), name, server)


def store(
    path: PathLike, x: Any, *, client: Client | PublicClient | None = None, name: str | None = None
) -> StoredMatrix:
    """Store an encrypted matrix of a plan; or, with a client, encrypt an array into a store block by block.

    Encrypting so takes no more memory than the array. A store is never changed: the name has to be free.

    Raises `PlanError` for an input that the plan has not, `ShapeError` for another shape,
    `UnsupportedError` for what is no matrix of a plan.

    >>> f, A, B = lambda A, B: A @ B, sd.spec((2, 3)), sd.spec((3, 2))
    >>> plan = sd.plan(f, A=A, B=B, error=1e-4, method="coefficient")
    >>> client = sd.Client(plan)
    >>> path = os.path.join(folder, "a.sudare")
    >>> sd.store(path, np.ones((2, 3)), client=client, name="A").shape
    (2, 3)
    """
    target = os.fspath(path)
    if isinstance(x, Encrypted):
        if x.plan is None:
            raise PlanError("the matrices of a context are not stored; make a plan, whose matrices are")
        return StoredMatrix(_core.Stored.save(x.plan._core, x._core, target), target, x._home)
    if client is None:
        raise UnsupportedError(
            f"an encrypted matrix is stored, not {type(x).__name__}; to encrypt it, give client=…"
        )
    from ._session import Client, _named

    named = _named(client.plan, x, name)
    values = planned(rows(plain(x))[0], client.plan.batch)
    with progress(f"encrypting {named}") as report:
        if isinstance(client, Client):
            core = _core.Stored.encrypt(client._core, named, values, target, report)
            return StoredMatrix(core, target, client._home)
        return StoredMatrix(
            _core.Stored.encrypt_public(client._core, named, values, target, report), target, None
        )
