"""Estimators whose parameters stay encrypted while a server iterates, in contexts that bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._errors import InputError, ShapeError, UnsupportedError
from .._matrix import Encrypted
from .._values import count
from ._base import Estimator

Self = TypeVar("Self", bound="Iterating")


class Iterating(Estimator):
    """An estimator that iterates on an encrypted table, and is read by `Context.decrypt`."""

    def _decrypted(self: Self, read: Callable[[Any], Any]) -> Self:
        """The fitted estimator, from what its owner reads of its parts."""
        if not hasattr(self, "encrypted_"):
            raise UnsupportedError(f"this {type(self).__name__} was not fitted on an encrypted table")
        found = self._blank()
        found._read({name: read(part) for name, part in self.encrypted_.items()}, self.n_iter_)
        return found

    def _keep(self, features: int, rounds: int, **parts: Any) -> None:
        self.encrypted_ = parts
        self.n_iter_ = rounds
        self._seen(features)

    def _read(self, parts: dict[str, Any], rounds: int) -> None:
        raise NotImplementedError

    def _rounds(self) -> int:
        found = count(self.get_params()["max_iter"], "max_iter")
        if found < 1:
            raise InputError("max_iter is a number of iterations, one or more")
        return found


def shape_of(x: Encrypted) -> tuple[int, int]:
    """Rows and columns of an encrypted table of a context that bootstraps."""
    if not x._is_table:
        raise UnsupportedError(
            "an estimator that iterates takes tables over whole ciphertexts, of "
            'sudare.context(bootstrap="A", columns=32)'
        )
    if len(x.shape) != 2:
        raise ShapeError(f"rows and features are wanted, not an array of shape {x.shape}")
    rows, columns = x.shape
    return rows, columns


def ready(x: Any, levels: int) -> Any:
    """The same elements, none over one, with so many levels at least."""
    return x if x.level >= levels else x.refresh(max_abs=1)
