"""Texts of up to a stated length, encrypted as identifiers: compared, looked up and joined, never read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._bits_array import EncryptedBits, where
from ._errors import InputError, ShapeError, UnsupportedError
from ._frames import place
from ._opaque import Opaque
from ._values import array, count

__all__ = ["EncryptedText"]

#: Bytes of a number that holds a part of a text.
WORD = 8


def words_of(values: Any, length: int) -> NDArray[np.uint64]:
    """Texts as numbers of 64 bits along a last axis: their bytes in UTF-8, and zeros up to `length`.

    Raises `InputError` for a text that is longer, or ends in a zero, `UnsupportedError` for what is none.
    """
    most = count(length, "length")
    if most == 0:
        raise InputError("the length of a text is 1 byte or more")
    given = np.asarray(values, dtype=object)
    width = -(-most // WORD) * WORD
    rows = []

    def named(at: int) -> str:
        return place(values, tuple(int(n) for n in np.unravel_index(at, given.shape)))

    for at, text in enumerate(given.ravel().tolist()):
        if not isinstance(text, str):
            what = "has no text" if text is None or text != text else f"is no text but {type(text).__name__}"
            raise UnsupportedError(f"{named(at)} {what}; fill it, or convert it: .astype(str)")
        data = text.encode()
        if len(data) > most or data.endswith(b"\0"):
            # Texts are nobody's business but the caller's: the place alone.
            raise InputError(
                f"{named(at)} has {len(data)} bytes, and up to {most} are taken, the last "
                "not zero; say a larger length"
            )
        rows.append(data.ljust(width, b"\0"))
    numbers = np.frombuffer(b"".join(rows), ">u8").astype(np.uint64)
    return numbers.reshape((*given.shape, width // WORD))


def texts_of(words: NDArray[np.uint64]) -> NDArray[Any]:
    """The texts that numbers along the last axis stand for."""
    rows = words.astype(">u8").reshape(-1, words.shape[-1])
    texts = [row.tobytes().rstrip(b"\0").decode() for row in rows]
    return np.array(texts, dtype=str).reshape(words.shape[:-1])


class EncryptedText(Opaque):
    """An array of texts that nobody can read without the client's key, made by `encrypt_text`.

    `==` and `!=` with other encrypted texts, with a text or an array of them give encrypted booleans and
    broadcast as NumPy's do. Everybody sees how many there are, and how long they may be. `words` are the
    numbers that travel; `EncryptedText(words, length)` are the texts again.

    >>> ctx = sd.bits(parameters="insecure_test")  # no security: quick to try
    >>> names = ctx.encrypt_text(["Ada", "Emmy"], length=8)
    >>> ctx.decrypt(names == "Emmy").tolist()
    [False, True]
    """

    def __init__(self, words: EncryptedBits, length: int) -> None:
        if words.dtype != np.uint64 or not words.ndim or words.shape[-1] != -(-length // WORD):
            raise ShapeError(f"texts of {length} bytes are uint64 words along a last axis, not {words!r}")
        self.words, self.length = words, length

    @property
    def shape(self) -> tuple[int, ...]:
        """Their shape."""
        return self.words.shape[:-1]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise UnsupportedError("a single text has no len(); its shape is ()")
        return self.shape[0]

    def __getitem__(self, key: Any) -> EncryptedText:
        keys = key if isinstance(key, tuple) else (key,)
        dots = () if Ellipsis in [k for k in keys if k is Ellipsis] else (Ellipsis,)
        return EncryptedText(self.words[(*keys, *dots, slice(None))], self.length)

    def _numbers(self, other: Any) -> Any:
        if isinstance(other, EncryptedText):
            if other.length != self.length:
                raise ShapeError(
                    f"texts of up to {self.length} and {other.length} bytes are not compared; encrypt both "
                    "with one length"
                )
            return other.words
        if isinstance(other, Opaque):
            raise UnsupportedError(f"texts are compared with texts, not with {type(other).__name__}")
        return words_of(other, self.length)

    def __eq__(self, other: object) -> Any:
        return (self.words == self._numbers(other)).all(axis=-1)

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    __hash__ = None

    def isin(self, among: Any) -> EncryptedBits:
        """Whether each is one of others, which are plain or encrypted.

        Raises `ShapeError` for texts of another length, `UnsupportedError` for what is no text.
        """
        return (self[..., None] == _flat(among)).any(axis=-1)  # type: ignore[no-any-return]

    def lookup(self, keys: Any, values: Any, default: int = 0) -> EncryptedBits:
        """For each text the value of the key that is equal, or `default`: a left join with one column.

        Keys and values are plain or encrypted, values integers or booleans, a row of them for each key. Of
        keys that occur twice the values are added.

        Raises `ShapeError` for other numbers of keys and values, or texts of another length,
        `UnsupportedError` for what is no text or no integer.
        """
        found = self[..., None] == _flat(keys)
        given = values if isinstance(values, EncryptedBits) else array(values)
        if given.shape != found.shape[-1:]:
            raise ShapeError(f"{found.shape[-1]} keys have as many values, not the shape {given.shape}")
        kind = given.dtype
        total = where(found, given, np.zeros((), kind)).sum(axis=-1, dtype=kind)
        return total if default == 0 else where(found.any(axis=-1), total, np.asarray(default, kind))

    def __repr__(self) -> str:
        return f"<sudare encrypted text {self.shape}, up to {self.length} bytes, key {self.words.key_id[:8]}>"


def _flat(among: Any) -> Any:
    if isinstance(among, EncryptedText):
        return EncryptedText(among.words.reshape(-1, among.words.shape[-1]), among.length)
    return np.asarray(among, dtype=object).ravel()
