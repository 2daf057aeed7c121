"""What can go wrong, each with the state that was met and the remedy.

Every class is a `SudareError`; those that NumPy users expect to catch as `ValueError`,
`TypeError` or `LookupError` are that as well. An operation that raises leaves its operands alone.
"""

from __future__ import annotations

__all__ = [
    "CostWarning",
    "FormatError",
    "InputError",
    "KeyMismatchError",
    "LevelError",
    "MissingKeyError",
    "OutOfMemoryError",
    "PlanError",
    "PrecisionError",
    "ReleaseError",
    "RemoteError",
    "SecurityError",
    "ShapeError",
    "SudareError",
    "UnsupportedError",
]


class CostWarning(UserWarning):
    """Tells of work that takes more than ten seconds or a gigabyte, before it is done.

    `warnings.simplefilter("error", sudare.CostWarning)` refuses such work.
    """


class SudareError(Exception):
    """The base of everything that this package raises on purpose."""


class ShapeError(SudareError, ValueError):
    """Shapes that do not go together, or another shape than the plan's."""


class InputError(SudareError, ValueError):
    """A value that cannot be encrypted: NaN, infinity, or one over the planned bound."""


class OutOfMemoryError(SudareError, MemoryError):
    """What is asked for does not fit into memory; nothing was taken of it."""


class PlanError(SudareError, ValueError):
    """No parameters satisfy the requirements, or a step that the plan does not hold."""


class SecurityError(SudareError, ValueError):
    """Parameters under the security that was asked for."""


class KeyMismatchError(SudareError, ValueError):
    """Objects of different keys or parameter sets were brought together."""


class MissingKeyError(SudareError, LookupError):
    """A rotation or relinearisation key that the server does not hold."""


class LevelError(SudareError, ArithmeticError):
    """More multiplications in a row than the parameters have levels for."""


class PrecisionError(SudareError, ArithmeticError):
    """A value that the modulus cannot hold, or noise that would swallow the message."""


class ReleaseError(SudareError, RuntimeError):
    """A decryption for release that was not declared, or of something that is not what was planned."""


class FormatError(SudareError, ValueError):
    """Bytes that are no Sudare object, or a damaged one."""


class UnsupportedError(SudareError, TypeError):
    """An operation that encrypted matrices do not have."""


class RemoteError(SudareError, OSError):
    """A remote server that refused, or cannot be reached; `kind` says which."""

    def __init__(self, message: str, kind: str = "unreachable") -> None:
        super().__init__(shown(message))
        self.kind = kind


def shown(message: str, most: int = 1000) -> str:
    """What others wrote, for a message: nothing that a terminal obeys, and no more than a person reads."""
    text = "".join(c if c.isprintable() else "?" for c in message[: most + 1])
    return text if len(text) <= most else f"{text[:most]}…"
