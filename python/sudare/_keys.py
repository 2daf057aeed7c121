"""What owners of secret keys have in common, and what servers with evaluation keys have."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Generic, NoReturn, Protocol, TypeVar

from ._errors import UnsupportedError
from ._files import Source, Travels, octets

Computes = TypeVar("Computes")


class Home(Generic[Computes]):
    """Where the values of a client are computed with: at its server, as soon as there is one.

    All values of a client share it, so that they may be encrypted before the server is made.
    """

    def __init__(self, server: Computes | None = None) -> None:
        self.server = server


class _Secret(Protocol):
    @property
    def key_id(self) -> str: ...
    def secret_bytes(self) -> bytes: ...
    def save(self, path: str, overwrite: bool) -> None: ...


class _Evaluation(Protocol):
    @property
    def key_id(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def key_bytes(self) -> int: ...
    def keys_bytes(self) -> bytes: ...


Secret = TypeVar("Secret", bound=_Secret)
Evaluation = TypeVar("Evaluation", bound=_Evaluation)


class SecretHolder(Travels, Generic[Secret]):
    """Gives its secret key out by name only, and so does not pickle."""

    #: How a client is made again from its secret key, for the refusal's text.
    _again: ClassVar[str]
    _core: Secret

    @property
    def key_id(self) -> str:
        """The secret key's public name, which everything under it bears."""
        return self._core.key_id

    def secret_bytes(self) -> bytes:
        """The secret key. Whoever gets these bytes reads everything."""
        return self._core.secret_bytes()

    @staticmethod
    def _read(kind: Any, home: Any, data: Source, threads: int) -> Any:
        """The core of a client: a path is read past Python's memory, which nobody wipes."""
        if isinstance(data, (str, os.PathLike)):
            return kind.load(home, os.fspath(data), threads)
        return kind.from_secret_bytes(home, octets(data), threads)

    def _saved(self) -> bytes:
        return self.secret_bytes()

    def _write(self, path: str, overwrite: bool) -> None:
        # As `_read`.
        self._core.save(path, overwrite)

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a client holds a secret key and does not pickle; take the key out by client.secret_bytes() "
            f"and make the client again by sudare.{self._again}"
        )


class KeyedServer(Travels, Generic[Evaluation]):
    """Holds evaluation keys and nothing secret."""

    _core: Evaluation

    @property
    def key_id(self) -> str:
        """The public name of the key whose data it computes on."""
        return self._core.key_id

    @property
    def threads(self) -> int:
        """How many threads work."""
        return self._core.threads

    @property
    def key_bytes(self) -> int:
        """Bytes of its keys in memory."""
        return self._core.key_bytes

    def to_bytes(self) -> bytes:
        """Its evaluation keys, as they travel."""
        return self._core.keys_bytes()

    def _saved(self) -> bytes:
        return self.to_bytes()
