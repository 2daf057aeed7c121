"""What owners of secret keys have in common, and what servers with evaluation keys have."""

from __future__ import annotations

from typing import ClassVar, Generic, NoReturn, Protocol, TypeVar

from ._errors import UnsupportedError


class _Secret(Protocol):
    def secret_bytes(self) -> bytes: ...


class _Evaluation(Protocol):
    @property
    def threads(self) -> int: ...
    @property
    def key_bytes(self) -> int: ...
    def keys_bytes(self) -> bytes: ...


Secret = TypeVar("Secret", bound=_Secret)
Evaluation = TypeVar("Evaluation", bound=_Evaluation)


class SecretHolder(Generic[Secret]):
    """Gives its secret key out by name only, and so does not pickle."""

    #: How a client is made again from its secret key, for the refusal's text.
    _again: ClassVar[str]
    _core: Secret

    def secret_bytes(self) -> bytes:
        """The secret key. Whoever gets these bytes reads everything."""
        return self._core.secret_bytes()

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a client holds a secret key and does not pickle; take the key out by client.secret_bytes() "
            f"and make the client again by sudare.{self._again}"
        )


class KeyedServer(Generic[Evaluation]):
    """Holds evaluation keys and nothing secret."""

    _core: Evaluation

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
