"""Encrypted arrays of integers without a plan, exact to any depth."""

from __future__ import annotations

from typing import Any, Literal, NoReturn

import numpy as np

from . import _core
from ._errors import InputError, ShapeError, UnsupportedError
from ._frames import framed
from ._integers import DOUBLES, whole
from ._matrix import Encrypted, members, rows
from ._progress import progress
from ._session import Server
from ._values import each, real, security_bits

__all__ = ["IntegerContext"]


class IntegerContext:
    """Encrypts, computes and decrypts arrays of integers in one place, with the secret key and all others.

    Made by `context(bootstrap="X15")` or `"X16"`. Arrays are computed with element by element, exactly
    modulo the prime `modulus`, as often as you like: one is refreshed where an operation would leave too
    little room.
    """

    def __init__(
        self, bootstrap: str, *, security: int | Literal["insecure"] = 128, threads: int = 0
    ) -> None:
        with progress("making keys"):
            self._core = _core.IntegerContext(bootstrap, security_bits(security), threads)
        self._server = Server(self._core.server(), None)
        self._bootstrap, self._security = bootstrap, security

    @property
    def modulus(self) -> int:
        """The prime t modulo which it computes: 65537."""
        return self._core.modulus

    @property
    def slots(self) -> int:
        """Elements of a ciphertext."""
        return self._core.slots

    @property
    def depth(self) -> int:
        """Products in a row between two refreshes."""
        return self._core.depth

    @property
    def threads(self) -> int:
        """How many threads work."""
        return self._server.threads

    @property
    def key_bytes(self) -> int:
        """Bytes of its keys in memory, and of what its refreshes have prepared."""
        return self._server.key_bytes

    def encrypt(self, x: Any, max_abs: float | None = None) -> Encrypted:
        """Encrypt a matrix or vector of integers up to `max_abs`.

        The bound is public. Without one it is the least power of two that holds all elements.

        Raises `ShapeError` for anything but a matrix or vector, `InputError` for an element over the bound or
        of 54 bits or more, `UnsupportedError` for what holds no integers.
        """
        if isinstance(x, Encrypted):
            raise UnsupportedError("this array is encrypted already")
        values, dropped = rows(whole(x))
        if values.ndim != 2:
            raise ShapeError(f"a context takes matrices and vectors, not an array of shape {values.shape}")
        bound = None if max_abs is None else real(max_abs, "max_abs")
        largest = max(abs(int(values.max())), abs(int(values.min())))
        if largest >= DOUBLES or (bound is not None and largest > bound):
            over = "2^53" if bound is None or largest >= DOUBLES else f"max_abs={bound:g}"
            raise InputError(
                f"an element is {largest} in absolute value, over {over}; reduce it % {self.modulus}"
            )
        return Encrypted(
            self._core.encrypt(members(values.astype(np.float64)), bound), None, self._server, dropped
        )

    def decrypt(self, x: Any, *, like: Any = None) -> Any:
        """Decrypt an array, or a tuple, a list, a dictionary or a dataclass of them.

        Where its bound, `x.max_abs`, is under half of `modulus`, elements are the integers themselves. Larger
        ones come as `% modulus` gives them. `like` is a data frame whose columns, or rows, the result has: it
        comes as one.

        Raises `UnsupportedError` for what is no encrypted array, `KeyMismatchError` for one of another
        context, `ShapeError` for other columns and rows than those of `like`.
        """

        def shown(part: Any) -> Any:
            if not isinstance(part, Encrypted):
                raise UnsupportedError(f"an array of a context is decrypted, not {type(part).__name__}")
            found = np.asarray(self._core.decrypt_integers(part._core), dtype=np.int64).reshape(part.shape)
            return found if like is None else framed(found, like)

        return each(shown, x)

    def __repr__(self) -> str:
        security = "NO SECURITY, " if self._security == "insecure" else ""
        return (
            f"<sudare context of integers modulo {self.modulus}, set {self._bootstrap}, "
            f"N = 2^{self._server._core.log_n}, {self.depth} products between refreshes, {security}"
            f"{self.threads} threads, keys {self.key_bytes / 1e6:.0f} MB, secret key hidden>"
        )

    def save(self, target: Any) -> NoReturn:
        """Refused: what a context encrypts belongs to this process."""
        raise UnsupportedError(
            "a context and its arrays are not saved; a plan's client, server and values are"
        )

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError("a context holds a secret key and does not pickle; use a plan and its client")
