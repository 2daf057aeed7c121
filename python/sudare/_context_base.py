"""What contexts of real numbers, of integers and of bits have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn, Protocol, TypeVar

from . import _core
from ._array import Shape
from ._errors import ShapeError, UnsupportedError
from ._frames import framed
from ._matrix import Encrypted
from ._values import each

__all__ = ["ContextBase", "checked", "taken"]


class _Computes(Protocol):
    @property
    def threads(self) -> int: ...
    @property
    def key_bytes(self) -> int: ...


Part = TypeVar("Part")


class ContextBase:
    """Holds the secret key and all others, in this process alone."""

    _server: _Computes
    _security: int | Literal["insecure"]

    @property
    def threads(self) -> int:
        """How many threads work."""
        return self._server.threads

    @property
    def key_bytes(self) -> int:
        """Bytes of its evaluation keys in memory, and of what its refreshes have prepared."""
        return self._server.key_bytes

    def _read(self, x: Any, like: Any, read: Callable[[Part], Any], known: Callable[[Any], Part]) -> Any:
        """Every part, if it is `known`, as `read` decrypts it, in its own shape or as a frame."""

        def shown(part: Any) -> Any:
            found = read(known(part)).reshape(part.shape)
            return found if like is None else framed(found, like)

        return each(shown, x)

    def _described(self, kind: str) -> str:
        """The context and its keys, for people."""
        return (
            f"<sudare context {kind}, {'NO SECURITY, ' if self._security == 'insecure' else ''}"
            f"{self.threads} threads, keys {self.key_bytes / 1e6:.0f} MB, secret key hidden>"
        )

    def save(self, target: Any) -> NoReturn:
        """Refused: what a context encrypts belongs to this process."""
        raise UnsupportedError(
            "a context and what it encrypts are not saved; a plan's client, server and values are"
        )

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError("a context holds a secret key and does not pickle; use a plan and its client")


def taken(x: Any, lines: Callable[[Any], tuple[Any, Shape]]) -> tuple[Any, Shape]:
    """The matrix that is encrypted, as `lines` makes rows and columns of it, and what they stand for.

    Raises `UnsupportedError` for what is encrypted already, `ShapeError` for anything but a matrix or vector.
    """
    if isinstance(x, Encrypted):
        raise UnsupportedError("this matrix is encrypted already; use it as it is")
    values, dropped = lines(x)
    if values.ndim != 2:
        raise ShapeError(f"a context takes matrices and vectors, not an array of shape {values.shape}")
    return values, dropped


def checked(x: Any) -> _core.Encrypted:
    """What the extension knows of a value of a context.

    Raises `UnsupportedError` for anything else.
    """
    if not isinstance(x, Encrypted):
        raise UnsupportedError(f"a matrix of a context is decrypted, not {type(x).__name__}")
    return x._core
