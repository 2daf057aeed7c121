"""Scores against a table of vectors that the server has in the clear, for questions that it cannot read.

>>> faces = np.sin(np.arange(300 * 64) ** 1.5).reshape(300, 64).astype("f4")
>>> index = sd.PlainIndex(d=64)
>>> client = sd.Client(index)
>>> table = sd.PlainTable(index, faces)
>>> question = client.query(faces[7])
>>> scores = client.decrypt(table.scores(question))
>>> int(scores.argmax()), bool(abs(scores[7] - 1) < 1e-3)
(7, True)
>>> client.top(table, question, 2)["index"].tolist()[0]
7
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._errors import FormatError
from ._files import Source, Travels, octets
from ._index import best, unit_vectors
from ._keys import SecretHolder
from ._values import count

__all__ = ["PlainClient", "PlainIndex", "PlainTable"]


#: Version of plans that this release makes and reads.
_VERSION = 1


class PlainIndex(Travels):
    """What both sides of scores against a table in the clear share: vectors have `d` (to 4,096) coordinates.

    The asker learns the scores of all rows, and so the rows after d/2 questions: give such scores to nobody
    who may not read the table. The server learns nothing of questions. There are no evaluation keys.

    Raises `InputError` for a `d` that is no whole number, `PlanError` for more.
    """

    def __init__(self, *, d: int) -> None:
        self._d = count(d, "d")
        self._core = _core.PlainIndex(self._d)

    @classmethod
    def from_json(cls, text: str) -> PlainIndex:
        """Read a plan. Raises `FormatError` for text that is no such plan, and as `PlainIndex`."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            given = None
        wanted = {"sudare_plain_index": int, "d": int}
        if not isinstance(given, dict) or {name: type(x) for name, x in given.items()} != wanted:
            raise FormatError("this is no plan of scores against rows in the clear; copy it again")
        if given["sudare_plain_index"] != _VERSION:
            raise FormatError("the plan's version is unknown; use a newer release of sudare")
        return cls(d=given["d"])

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps({"sudare_plain_index": _VERSION, "d": self._d}, indent=1)

    def _saved(self) -> bytes:
        return self.to_json().encode()

    @property
    def d(self) -> int:
        """Coordinates of a vector."""
        return self._d

    @property
    def deviation(self) -> float:
        """Standard deviation of a score's error."""
        return self._core.deviation

    def __repr__(self) -> str:
        return f"<sudare index of {self._d} coordinates, rows in the clear, errors {self.deviation:.1e}>"


class PlainTable:
    """Rows that the server has, an array (n, d), made ready to be scored. They are normalised.

    `threads` work for it (0: one for each processor).

    Raises `InputError` for numbers that are not finite, `ShapeError`.
    """

    def __init__(self, index: PlainIndex, rows: ArrayLike, *, threads: int = 0) -> None:
        self._core = _core.PlainTable(index._core, unit_vectors(rows, index.d), threads)

    def __len__(self) -> int:
        return self._core.rows

    def scores(self, query: Source) -> bytes:
        """The encrypted cosines of all rows with the vectors of a question: twelve bytes a row and vector.

        Raises `FormatError` for what is no question, `KeyMismatchError` for one of another plan.
        """
        return self._core.scores(octets(query))

    def __repr__(self) -> str:
        return f"<sudare table of {len(self)} rows in the clear>"


class PlainClient(SecretHolder[_core.PlainClient]):
    """Asks a table in the clear, with a secret key. `sudare.Client(plain_index)` makes one."""

    _again: ClassVar[str] = "PlainClient.from_secret_bytes(index, data)"

    def __init__(self, index: PlainIndex, *, threads: int = 0) -> None:
        self._core, self._index = _core.PlainClient(index._core, threads), index

    @classmethod
    def from_secret_bytes(cls, index: PlainIndex, data: Source, *, threads: int = 0) -> PlainClient:
        """A client from the secret key that `secret_bytes` or `save` gave.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for a key of other parameters.
        """
        client = cls.__new__(cls)
        client._core, client._index = cls._read(_core.PlainClient, index._core, data, threads), index
        return client

    def query(self, vectors: ArrayLike) -> bytes:
        """Encrypt a question (d,), or a batch of them (b, d): d ciphertexts of 12 kB each.

        Raises `InputError` for zeros and numbers that are not finite, `ShapeError`.
        """
        return self._core.query(unit_vectors(vectors, self._index.d))

    def decrypt(self, answer: Source) -> NDArray[np.float64]:
        """The cosines of all rows: (n,) for one vector asked, or (b, n).

        Raises `FormatError` for what is no answer, `KeyMismatchError` for another plan's or key's.
        """
        scores = np.array(self._core.scores(octets(answer)))
        return scores[0] if len(scores) == 1 else scores

    def top(self, table: PlainTable, query: Source, k: int) -> Any:
        """The k rows that are most like a question, best first: a structured array of index and score.

        Raises `InputError` for k that is no whole number, and as `PlainTable.scores` and `decrypt`.
        """
        found = self.decrypt(table.scores(query))
        return best(found, k) if found.ndim == 1 else [best(each, k) for each in found]

    def __repr__(self) -> str:
        return f"<sudare client {self.key_id} of {self._index!r}>"
