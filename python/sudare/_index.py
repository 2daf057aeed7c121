"""Encrypted search among vectors: the rows of a table that are like one of yours.

The server holds an encrypted table and answers encrypted questions; it learns neither rows nor questions
nor matches.

>>> faces = np.sin(np.arange(300 * 64) ** 1.5).reshape(300, 64).astype("f4")
>>> index = sd.Index(d=64, above=0.8, gap=(0.7, 0.9), rows=1000, payload=("i2", 2), insecure=9)
>>> client = sd.Client(index)
>>> server = client.server()
>>> path = os.path.join(folder, "faces.sudare")
>>> client.store(path, faces, payload=np.arange(600, dtype="i2").reshape(300, 2))
300
>>> table = sd.open(path, server=server)
>>> question = client.query(faces[7] + 0.1)
>>> client.decrypt(table.count(question))
1
>>> client.decrypt(table.fetch(question))["payload"]
array([[14, 15]], dtype=int16)
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._errors import InputError, ShapeError, SudareError, UnsupportedError
from ._files import PathLike, Source, Travels, octets
from ._keys import KeyedServer, SecretHolder
from ._memory import available
from ._progress import progress
from ._stored import size
from ._values import array, count, real

__all__ = ["Index", "IndexAnswer", "IndexClient", "IndexQuery", "IndexServer", "IndexTable", "TooManyError"]

#: Bits of the widest payload.
_WIDE = 64
#: Bytes that are taken for free where the system does not say.
DEFAULT = 8 << 30


class TooManyError(SudareError):
    """More rows match than were allowed."""


class Index(Travels):
    """A plan of a search: what is asked, its parameters, what it costs and how far answers can be wrong.

    Vectors have `d` coordinates; there are up to `rows` of them. A row matches where its cosine with the
    question is over `above`. `gap` promises that no cosine lies between two numbers about it (of those that
    do a row counts as something between 0 and 1, and the client refuses a count that is no whole number);
    without one it is the narrowest that `rows` allow. `payload` is what comes back with a match: a NumPy
    type of integers or floats and how many of them, `("i2", 7)`, or with a third number the bits that are
    used of unsigned ones, `("u2", 7, 12)`. `lowest` is the least cosine that occurs, where the data are
    known not to have opposite directions.

    `mode` is how the table is encrypted: `"leveled"` answers small tables in the least time and tells scores
    too; `"compact"` takes a tenth of the memory, 8 bytes a coordinate, so that large tables fit, and counts
    and fetches by way of half a bootstrap.

    `insecure` is log2 of the degree of a ring without security, for tests.

    Raises `PlanError` for a gap that is too narrow, with one that is not; `InputError` for numbers that
    make no sense.

    >>> index = sd.Index(d=64, above=0.8, rows=1000, gap=(0.7, 0.9), insecure=9)  # no security: quick to try
    >>> index.gap
    (0.7, 0.9)
    """

    def __init__(
        self,
        *,
        d: int,
        above: float,
        rows: int,
        gap: tuple[float, float] | None = None,
        payload: tuple[Any, ...] | None = None,
        lowest: float = -1.0,
        mode: str = "leveled",
        insecure: int | None = None,
    ) -> None:
        ends = None if gap is None else (real(gap[0], "gap"), real(gap[1], "gap"))
        core = _core.Index(
            count(d, "d"),
            count(rows, "rows"),
            real(above, "above"),
            ends,
            real(lowest, "lowest"),
            None if payload is None else _payload(payload),
            mode,
            insecure,
        )
        self._hold(core)

    def _hold(self, core: _core.Index) -> None:
        self._core, self._d, payload = core, core.d, core.payload
        self._payload = None if payload is None else (np.dtype(payload[2]), payload[0], payload[1])

    @classmethod
    def from_json(cls, text: str) -> Index:
        """Read a plan; everything in it is worked out and checked again.

        Raises `FormatError` for text that is no such plan, `PlanError` for numbers that make none.
        """
        index = cls.__new__(cls)
        index._hold(_core.Index.from_json(text))
        return index

    def to_json(self) -> str:
        """The plan as JSON."""
        return self._core.to_json()

    @property
    def mode(self) -> str:
        """How the table is encrypted: `"leveled"` or `"compact"`."""
        return self._core.mode

    @property
    def gap(self) -> tuple[float, float]:
        """Where no cosine lies."""
        return self._core.gap

    @property
    def segment_rows(self) -> int:
        """Rows that are stored together: appended ones come best in such lots."""
        return self._core.segment_rows

    @property
    def bytes(self) -> dict[str, int]:
        """Sizes of table, keys, question, answers, and the server's memory: without rows, and of rows."""
        names = ("table", "keys", "question", "count", "fetch", "scores", "memory", "rows")
        return dict(zip(names, self._core.bytes, strict=True))

    @property
    def log2_failure(self) -> float:
        """Log2 of the probability that a count is wrong or refused, if no cosine lies in the gap."""
        return self._core.expected[2]

    def seconds(self) -> float:
        """Seconds of a count of one question on one thread, rows in memory.

        `sudare calibrate` measures this machine. Before that, the figures are of a Sapphire Rapids core.
        """
        return self._core.seconds()

    def explain(self) -> str:
        """Costs, errors, and what each side learns. Seconds as in :meth:`seconds`."""
        return self._core.explain()

    def _saved(self) -> builtins.bytes:
        return self.to_json().encode()

    def __repr__(self) -> str:
        return f"<sudare index: {self._core.describe()}>"

    def _vectors(self, values: Any) -> NDArray[np.float32]:
        return unit_vectors(values, self._d)

    def _numbers(self, values: Any, rows: int) -> NDArray[np.uint64]:
        if self._payload is None:
            if values is not None:
                raise InputError("this index was planned without payloads; plan one with payload=")
            return np.zeros(0, dtype=np.uint64)
        dtype, numbers, bits = self._payload
        found = np.asarray(values).reshape(rows, -1) if values is not None else np.zeros((rows, 0))
        if found.shape != (rows, numbers):
            raise ShapeError(
                f"payloads of {rows} rows have the shape ({rows}, {numbers}), not {np.shape(values)}"
            )
        given = found.astype(dtype)
        if not np.array_equal(given, found, equal_nan=given.dtype.kind == "f"):
            raise InputError(f"payloads of this index are {dtype}, and these hold other values; convert them")
        words = np.ascontiguousarray(given).view(f"u{dtype.itemsize}").astype(np.uint64).ravel()
        if bits < _WIDE and (words >> np.uint64(bits)).any():
            raise InputError(
                f"payloads were planned with {bits} bits, and these hold larger numbers; plan more bits"
            )
        return words

    def _hits(self, rows: list[int], numbers: list[int]) -> NDArray[Any]:
        if self._payload is None:
            raise UnsupportedError("this index was planned without payloads; plan one with payload=")
        dtype, each, _ = self._payload
        out = np.empty(len(rows), dtype=[("index", np.int64), ("payload", dtype, (each,))])
        out["index"] = rows
        words = np.array(numbers, dtype=np.uint64).astype(f"u{dtype.itemsize}")
        out["payload"] = words.view(dtype).reshape(len(rows), each)
        return out


def unit_vectors(values: Any, d: int) -> NDArray[np.float32]:
    """Vectors of d coordinates, one a row; of each the largest coordinate has size one."""
    found = array(values)
    if found.dtype.kind not in "biuf":
        raise InputError(f"vectors are of real numbers, not of {found.dtype}")
    if found.ndim not in (1, 2) or found.shape[-1] != d:
        raise ShapeError(
            f"vectors of this index have {d} coordinates, and these have the shape {found.shape}"
        )
    if not np.isfinite(found).all():
        raise InputError("vectors hold numbers that are not finite; remove or replace them")
    rows = np.atleast_2d(found)
    # Only the direction counts: what a float cannot hold may still have one.
    largest = np.abs(rows).max(axis=1, keepdims=True).astype(np.float64)
    scaled = rows / np.where(largest > 0, largest, 1.0)
    return np.ascontiguousarray(scaled, dtype=np.float32)


def best(scores: NDArray[np.float64], k: int) -> NDArray[Any]:
    """The k largest scores with their rows, best first; ties go to the earlier row."""
    rows = np.lexsort((np.arange(len(scores)), -scores))[: count(k, "k")]
    found = np.empty(len(rows), dtype=[("index", np.int64), ("score", np.float64)])
    found["index"], found["score"] = rows, scores[rows]
    return found


def _payload(given: tuple[Any, ...]) -> tuple[int, int, str]:
    """Numbers of a row, bits of each, and the name of their type."""
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        raise InputError(f"a payload is a type and how many, ('i2', 7), not {given!r}")
    try:
        dtype = np.dtype(given[0])
    except TypeError:
        raise InputError(f"a payload's type is one of NumPy's, not {given[0]!r}") from None
    if dtype.kind not in "iuf" or dtype.itemsize > _WIDE // 8:
        raise InputError(f"a payload is of integers or floats of up to 64 bits, not of {dtype}")
    if not dtype.isnative:
        native = dtype.newbyteorder("=")
        raise InputError(f"a payload is in the byte order of this machine: plan {native}, not {dtype.str}")
    bits = count(given[2], "bits") if len(given) == 3 else 8 * dtype.itemsize
    if bits > 8 * dtype.itemsize or (len(given) == 3 and dtype.kind != "u"):
        raise InputError(f"bits are those of unsigned numbers, up to {8 * dtype.itemsize} of {dtype}")
    return count(given[1], "a payload's numbers"), bits, dtype.str[1:]


class IndexQuery(Travels):
    """An encrypted question, or several. The server reads its file: `sudare.load(file, server)`."""

    def __init__(self, core: _core.IndexQuery, single: bool) -> None:
        self._core, self._single = core, single

    def to_bytes(self) -> bytes:
        """What travels."""
        return self._core.to_bytes()

    def _saved(self) -> bytes:
        return self.to_bytes()

    @classmethod
    def from_bytes(cls, index: Index, data: Source) -> IndexQuery:
        """A question from its bytes. Raises `FormatError`, `KeyMismatchError` for another plan's."""
        core = _core.IndexQuery.from_bytes(index._core, octets(data))
        return cls(core, core.count == 1)

    def __repr__(self) -> str:
        return f"<sudare question of {self._core.count}>"


class IndexAnswer(Travels):
    """An encrypted answer: of one size, whatever matches. `sudare.load(file, client)` reads its file."""

    def __init__(self, core: _core.IndexAnswer, single: bool = False, plain: bool = False) -> None:
        self._core, self._single, self._plain = core, single, plain

    def to_bytes(self) -> bytes:
        """What travels."""
        return self._core.to_bytes()

    def _saved(self) -> bytes:
        return self.to_bytes()

    @classmethod
    def from_bytes(cls, index: Index, data: Source) -> IndexAnswer:
        """An answer from its bytes. Raises `FormatError`, `KeyMismatchError` for another plan's."""
        core = _core.IndexAnswer.from_bytes(index._core, octets(data))
        kind, queries, gaps = core.asked
        return cls(core, queries == 1, kind == "count" and gaps == 1)

    def __repr__(self) -> str:
        kind, queries, _ = self._core.asked
        return f"<sudare answer to {queries} of {kind}>"


class IndexTable:
    """A stored table that a server has opened: it answers questions."""

    def __init__(self, core: _core.IndexTable, index: Index) -> None:
        self._core, self._index = core, index

    def __len__(self) -> int:
        return self._core.rows

    def __repr__(self) -> str:
        every, held = self._core.segments
        return f"<sudare table of {self._core.rows} rows, {held} of {every} segments in memory, no secret>"

    def _gap(self, above: Any) -> tuple[float, float]:
        if above is None:
            return self._index.gap
        if isinstance(above, tuple):
            return real(above[0], "above"), real(above[1], "above")
        return self._index._core.gap_of(real(above, "above"))

    def count(self, query: IndexQuery, *, above: float | tuple[float, float] | None = None) -> IndexAnswer:
        """How many rows match. Another threshold, or a gap, takes no other keys.

        A batch reads the table once for as many questions as memory holds.

        Raises `KeyMismatchError` for a question of another plan or key, `PlanError` for a gap too narrow.
        """
        with progress("counting") as report:
            core = self._core.count(query._core, [self._gap(above)], report)
        return IndexAnswer(core, query._single, plain=True)

    def histogram(self, query: IndexQuery, edges: Sequence[float | tuple[float, float]]) -> IndexAnswer:
        """How many rows are above each of several thresholds.

        Raises as `count`.
        """
        with progress("counting") as report:
            core = self._core.count(query._core, [self._gap(edge) for edge in edges], report)
        return IndexAnswer(core, query._single)

    def fetch(self, query: IndexQuery, *, above: float | tuple[float, float] | None = None) -> IndexAnswer:
        """Which rows match, with their payloads.

        Raises as `count`; `PlanError` for an index without payloads.
        """
        with progress("fetching") as report:
            core = self._core.fetch(query._core, self._gap(above), report)
        return IndexAnswer(core, query._single)

    def scores(self, query: IndexQuery) -> IndexAnswer:
        """The cosines of all rows: an answer of ten bytes a row.

        Raises as `count`.
        """
        with progress("scores") as report:
            core = self._core.scores(query._core, report)
        return IndexAnswer(core, query._single)


class IndexServer(KeyedServer[_core.IndexServer]):
    """Answers questions. It holds evaluation keys and nothing secret."""

    def __init__(self, core: _core.IndexServer, index: Index) -> None:
        self._core, self._index = core, index

    def open(self, path: PathLike, *, memory: int | str | None = None) -> IndexTable:
        """Open a table within so much memory: bytes or "8 GB", half of what is free without.

        Segments that do not fit are read for every question.

        Raises `FormatError` for files that are damaged or of another table, `KeyMismatchError` for those of
        another plan or key, `PlanError` for too little memory.
        """
        most = (available() or DEFAULT) // 2 if memory is None else size(memory, "memory")
        return IndexTable(self._core.open(os.fspath(path), most), self._index)

    @classmethod
    def from_bytes(cls, index: Index, data: Source, threads: int = 0) -> IndexServer:
        """A server from evaluation keys, on `threads` threads (0: one for each processor).

        Raises `FormatError` for anything damaged, `KeyMismatchError` for keys of other parameters,
        `MissingKeyError`.
        """
        return cls(_core.IndexServer.from_bytes(index._core, octets(data), threads), index)

    def __repr__(self) -> str:
        return f"<sudare index server {self.threads} threads, keys {self.key_bytes / 1e6:.1f} MB, no secret>"


class IndexClient(SecretHolder[_core.IndexClient]):
    """Owns the secret key: stores rows, asks, and reads answers. `sudare.Client(index)` makes one."""

    _again = "IndexClient.from_secret_bytes(index, data)"

    def __init__(self, index: Index, *, threads: int = 0) -> None:
        self._core, self._index, self._threads = _core.IndexClient(index._core, threads), index, threads

    @classmethod
    def from_secret_bytes(cls, index: Index, data: Source, *, threads: int = 0) -> IndexClient:
        """A client from the secret key that `secret_bytes` or `save` gave.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for a key of other parameters.
        """
        client = cls.__new__(cls)
        client._core = cls._read(_core.IndexClient, index._core, data, threads)
        client._index, client._threads = index, threads
        return client

    @property
    def index(self) -> Index:
        """The plan."""
        return self._index

    def server(self) -> IndexServer:
        """A server with new evaluation keys."""
        return IndexServer(self._core.server(self._threads), self._index)

    def store(self, path: PathLike, vectors: Any, *, payload: Any = None) -> int:
        """Encrypt vectors into a table, segment by segment; how many rows it has.

        `vectors` are an array (n, d) or an iterator of such chunks, `payload` an array (n, numbers) or an
        iterator beside it. They are normalised. Interrupted, the same call goes on from the segments that
        are there.

        Raises `FileExistsError` or `SudareError` for a name that is taken, `InputError` for numbers that
        are not finite or payloads that do not fit, `ShapeError`, `PlanError` for more rows than were
        planned.
        """
        return self._add(path, vectors, payload, append=False)

    def append(self, path: PathLike, vectors: Any, *, payload: Any = None) -> int:
        """Add rows to a table; how many it has then. Lots of `Index.segment_rows` waste no room.

        Raises as `store`.
        """
        return self._add(path, vectors, payload, append=True)

    def discard(self, path: PathLike) -> int:
        """Remove segments that an interrupted `store` or `append` left; how many.

        Without it only the same rows can go on.
        """
        return self._core.discard(os.fspath(path))

    def _add(self, path: PathLike, vectors: Any, payload: Any, append: bool) -> int:
        storing = self._core.store(os.fspath(path), append)
        for rows, numbers in _chunks(vectors, payload):
            found = self._index._vectors(rows)
            storing.push(found, self._index._numbers(numbers, len(found)))
        return storing.finish()

    def query(self, vectors: ArrayLike) -> IndexQuery:
        """Encrypt a question (d,), or a batch of them (b, d), for which the server reads the table once.

        Raises `InputError` for zeros and numbers that are not finite, `ShapeError`.
        """
        found = self._index._vectors(vectors)
        return IndexQuery(self._core.query(found), np.ndim(vectors) == 1)

    def decrypt(self, answer: IndexAnswer, *, limit: int | None = None) -> Any:
        """What an answer says.

        Of a count a number, or an array for a batch; of a histogram an array of numbers; of a fetch a
        structured array
        with the fields index and payload, in the order of rows, or a list of them; of scores an array.

        Raises `PrecisionError` where cosines lie inside of the gap, `TooManyError` for a fetch of more than
        `limit` rows, `KeyMismatchError` for another key's answer.
        """
        kind = answer._core.asked[0]
        if kind == "count":
            counts = np.array(self._core.counts(answer._core), dtype=np.int64)
            counts = counts[:, 0] if answer._plain else counts
            return (
                counts[0].item()
                if answer._single and answer._plain
                else counts[0]
                if answer._single
                else counts
            )
        if kind == "scores":
            scores = np.array(self._core.scores(answer._core))
            return scores[0] if answer._single else scores
        hits = [self._index._hits(*each) for each in self._core.hits(answer._core)]
        if limit is not None and any(len(each) > limit for each in hits):
            raise TooManyError(
                f"{max(map(len, hits))} rows match, and {limit} are allowed; raise the threshold"
            )
        return hits[0] if answer._single else hits

    def top(self, table: IndexTable, query: IndexQuery, k: int) -> Any:
        """The k rows that are most like a question, best first: a structured array of index and score.

        Reads all scores: ten bytes a row travel, and the owner of the key learns them. Ties go to the
        earlier row.

        Raises `InputError` for k that is no whole number, and as `decrypt`.
        """
        out = [best(each, k) for each in np.atleast_2d(self.decrypt(table.scores(query)))]
        return out[0] if query._single else out

    def __repr__(self) -> str:
        return f"<sudare index client {self.key_id}: {self._index._core.describe()}>"


def _chunks(vectors: Any, payload: Any) -> Iterator[tuple[Any, Any]]:
    """Rows with their payloads, chunk by chunk."""
    if not isinstance(vectors, Iterable) or hasattr(vectors, "shape") or isinstance(vectors, (list, tuple)):
        yield vectors, payload
        return
    if payload is None:
        for rows in vectors:
            yield rows, None
        return
    for rows, numbers in zip(vectors, payload, strict=True):
        yield rows, numbers
