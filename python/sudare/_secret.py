"""What every owner of a secret key has in common."""

from __future__ import annotations

from typing import ClassVar, Generic, NoReturn, Protocol, TypeVar

from ._errors import UnsupportedError


class _Secret(Protocol):
    def secret_bytes(self) -> bytes: ...


Core = TypeVar("Core", bound=_Secret)


class SecretHolder(Generic[Core]):
    """Gives its secret key out by name only, and so does not pickle."""

    #: How a client is made again from its secret key, for the refusal's text.
    _again: ClassVar[str]
    _core: Core

    def secret_bytes(self) -> bytes:
        """The secret key. Whoever gets these bytes reads everything."""
        return self._core.secret_bytes()

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a client holds a secret key and does not pickle; take the key out by client.secret_bytes() "
            f"and make the client again by sudare.{self._again}"
        )
