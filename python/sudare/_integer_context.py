"""Encrypted arrays of integers without a plan, exact to any depth."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from . import _core
from ._context_base import ContextBase, checked, taken
from ._errors import InputError
from ._integers import DOUBLES, whole
from ._matrix import Encrypted, members, rows
from ._memory import require
from ._progress import progress
from ._session import Server
from ._values import real, security_bits

__all__ = ["IntegerContext"]


class IntegerContext(ContextBase):
    """Encrypts, computes and decrypts arrays of integers in one place, with the secret key and all others.

    Made by `context(bootstrap="X15")` or `"X16"`. Arrays are computed with element by element, exactly
    modulo the prime `modulus`, as often as you like: one is refreshed where an operation would leave too
    little room.
    """

    _server: Server

    def __init__(
        self, bootstrap: str, *, security: int | Literal["insecure"] = 128, threads: int = 0
    ) -> None:
        bits = security_bits(security)
        require(_core.IntegerContext.memory(bootstrap, bits), f"set {bootstrap}", "take a smaller set")
        with progress("making keys"):
            self._core = _core.IntegerContext(bootstrap, bits, threads)
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

    def encrypt(self, x: Any, max_abs: float | None = None) -> Encrypted:
        """Encrypt a matrix or vector of integers up to `max_abs`.

        The bound is public. Without one it is the least power of two that holds all elements.

        Raises `ShapeError` for anything but a matrix or vector, `InputError` for an element over the bound or
        of 54 bits or more, `UnsupportedError` for what holds no integers, `OutOfMemoryError` for more than
        fits into memory.
        """
        values, dropped = taken(x, lambda given: rows(whole(given)))
        bound = None if max_abs is None else real(max_abs, "max_abs")
        # Values are nobody's business but the caller's, and messages travel.
        largest = max(abs(int(values.max())), abs(int(values.min())))
        if largest >= DOUBLES or (bound is not None and largest > bound):
            over = "2^53" if bound is None or largest >= DOUBLES else f"max_abs={bound:g}"
            raise InputError(f"an element is over {over} in absolute value; reduce it % {self.modulus}")
        needed = -(-values.size // self.slots) * self._core.ciphertext_bytes
        require(needed, "to encrypt this array", "encrypt it in parts")
        return Encrypted(
            self._core.encrypt(members(values.astype(np.float64)), bound), None, self._server, dropped
        )

    def decrypt(self, x: Any, *, like: Any = None) -> Any:
        """Decrypt an array, or a tuple, a list, a dictionary or a dataclass of them.

        Where its bound, `x.max_abs`, is at most half of `modulus`, elements are the integers themselves.
        Larger ones come as `% modulus` gives them. `like` is a data frame whose columns, or rows, the result
        has: it comes as one.

        Raises `UnsupportedError` for what is no encrypted array, `KeyMismatchError` for one of another
        context, `ShapeError` for other columns and rows than those of `like`.
        """

        def read(core: _core.Encrypted) -> Any:
            return np.asarray(self._core.decrypt_integers(core), dtype=np.int64)

        return self._read(x, like, read, checked)

    def __repr__(self) -> str:
        return self._described(
            f"of integers modulo {self.modulus}, set {self._bootstrap}, N = 2^{self._server._core.log_n}, "
            f"{self.depth} products between refreshes"
        )
