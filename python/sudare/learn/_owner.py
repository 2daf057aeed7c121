"""The owner of a fit, and others who encrypt rows for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._errors import UnsupportedError
from .._files import Source, Travels
from .._frames import names, require_names
from .._keys import SecretHolder
from ._base import Estimator
from ._layout import Plan
from ._rows import Answer, Rows

if TYPE_CHECKING:
    from .._session import Client as ProductClient
    from .._session import Server


class Client(SecretHolder[_core.Client]):
    """The owner of the rows and of the secret key: `sudare.Client(plan)` makes one of a plan of a fit.

    Its server has evaluation keys and learns the plan: the numbers of rows, features and classes, bounds. The
    owner sees moments, and finishes fits from them.
    """

    _again = "learn.Client.from_secret_bytes(plan, data)"

    def __init__(self, plan: Plan, *, threads: int = 0) -> None:
        from .._session import Client as ProductClient

        self._setup(plan, ProductClient(plan.product, threads=threads))

    def _setup(self, plan: Plan, client: ProductClient) -> None:
        self._plan, self._client, self._core = plan, client, client._core
        self._features = plan._features

    @classmethod
    def from_secret_bytes(cls, plan: Plan, data: Source, *, threads: int = 0) -> Client:
        """A client from the secret key that `secret_bytes` or `save` gave.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for a key of other parameters.
        """
        from .._session import Client as ProductClient

        client = cls.__new__(cls)
        client._setup(plan, ProductClient.from_secret_bytes(plan.product, data, threads=threads))
        return client

    @property
    def plan(self) -> Plan:
        """The plan of the fit."""
        return self._plan

    def public(self) -> PublicClient:
        """Encrypts rows for this client, and can do no more: for others who give theirs."""
        return PublicClient(self._plan, self._client.public().to_bytes())

    @property
    def releases_left(self) -> int:
        """Fits that may still be shown under this key, of those that the plan declares."""
        return self._client.releases_left

    def server(self) -> Server:
        """The server for this client's rows, made once: evaluation keys only."""
        return self._client.server()

    def encrypt(self, X: Any, y: Any = None) -> Rows:
        """Encrypt rows and their targets, numbers or labels as planned. A frame's column names stay here.

        Raises `ShapeError` for other shapes than the plan's, and for a frame whose columns have other names
        or another order than those of the plan's frame, or of the first that was encrypted; `InputError` for
        values that are not finite or over their bounds and for labels that are not planned.
        """
        require_names(self._features, X)
        found = _encrypted(self._client, self._plan, X, y)
        self._features = self._features or names(X)
        return found

    def decrypt(self, x: Any, *, release: bool = False, private: bool = False) -> Any:
        """What was fitted on encrypted rows, as an estimator that is fitted; the moments of an answer.

        `release` and `private` are those of `sudare.Client.decrypt`: moments that others will see are
        released with noise, and so is every coefficient that follows from them.

        Raises `KeyMismatchError` for what another key or plan has, `ReleaseError` as `sudare.Client.decrypt`,
        `UnsupportedError` for what is neither.
        """
        if isinstance(x, Estimator):
            answer = getattr(x, "answer_", None)
            if answer is None:
                raise UnsupportedError(f"this {type(x).__name__} was not fitted on encrypted rows")
            fitted: Any = x._blank()
            return fitted.fit(self.decrypt(answer, release=release, private=private))
        if not isinstance(x, Answer):
            raise UnsupportedError(f"a fit or its answer is decrypted here, not {type(x).__name__}")
        (sums,) = (self._client.decrypt(part, release=release, private=private) for part in x.parts)
        return self._plan._read(sums, release, self._features)

    def __repr__(self) -> str:
        return "<sudare client of fits, secret key hidden>"


class PublicClient(Travels):
    """Encrypts rows for a `learn.Client` under its public key, and can do no more.

    Made by `client.public()`, and from its bytes (or their file) on another machine. The owner of the secret
    key sees the moments of what is encrypted here; moments of several tables add up.
    """

    def __init__(self, plan: Plan, public: Source, *, threads: int = 0) -> None:
        from .._session import PublicClient as ProductClient

        self._plan, self._client = plan, ProductClient(plan.product, public, threads=threads)
        self._features = plan._features

    @property
    def plan(self) -> Plan:
        """The plan of the fit."""
        return self._plan

    def encrypt(self, X: Any, y: Any = None) -> Rows:
        """Encrypt rows and their targets; takes and raises what `Client.encrypt` does."""
        require_names(self._features, X)
        found = _encrypted(self._client, self._plan, X, y)
        self._features = self._features or names(X)
        return found

    def to_bytes(self) -> bytes:
        """The public key, as it travels."""
        return self._client.to_bytes()

    def _saved(self) -> bytes:
        return self.to_bytes()

    def __repr__(self) -> str:
        return "<sudare public client of fits>"


def _encrypted(client: Any, plan: Plan, X: Any, y: Any) -> Rows:
    """Rows under the key of a client of the plan's product."""
    return Rows(plan, [client.encrypt(part, name) for name, part in plan._matrices(X, y).items()])
