"""Statistics of encrypted tables: means, variances, covariances, correlations of columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from . import _core
from ._array import Floats, plain
from ._errors import FormatError, InputError, ShapeError, UnsupportedError
from ._keys import KeyedServer, SecretHolder
from ._opaque import Opaque
from ._progress import progress
from ._values import array, count

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "EncryptedMoments",
    "EncryptedTable",
    "Moments",
    "TableClient",
    "TableServer",
    "TableSpec",
    "table",
]


@dataclass(frozen=True)
class Moments:
    """Decrypted statistics of a table's columns, with n - 1 degrees of freedom as in pandas."""

    rows: int
    mean: Floats
    covariance: Floats

    @property
    def variance(self) -> Floats:
        """The variance of each column."""
        return self.covariance.diagonal().copy()

    @property
    def std(self) -> Floats:
        """The standard deviation of each column; 0 where noise left a variance below zero."""
        return np.sqrt(np.maximum(self.variance, 0.0))

    @property
    def correlation(self) -> Floats:
        """Pearson correlations; not a number for columns without variance."""
        std = self.std
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.covariance / np.outer(std, std)
        np.fill_diagonal(found, np.where(std > 0, 1.0, np.nan))
        return np.clip(found, -1.0, 1.0)


class TableSpec:
    """What the key holder and the server know of a table: its shape and bounds. Make it by `table`.

    It travels as JSON, and pickles for your own processes.
    """

    def __init__(self, core: _core.TableSpec, security: int) -> None:
        self._core, self._security = core, security

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._core.shape

    @property
    def max_abs(self) -> Floats:
        """The bound on the absolute values of each column."""
        return np.array(self._core.max_abs)

    def to_json(self) -> str:
        """The specification as JSON."""
        return json.dumps({"rows": self.shape[0], "max_abs": self._core.max_abs, "security": self._security})

    @classmethod
    def from_json(cls, text: str) -> TableSpec:
        """Read a specification; everything in it is checked again."""
        try:
            loaded = json.loads(text)
            rows, bounds, security = loaded["rows"], list(loaded["max_abs"]), loaded["security"]
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"this is no specification of a table: {error}") from None
        return table((rows, len(bounds)), max_abs=bounds, security=security)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSpec) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<sudare table ({rows}, {columns}), {self._security}-bit security>"

    def __reduce__(self) -> tuple[Callable[..., TableSpec], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return _spec, (self.shape[0], self._core.max_abs, self._security)


def _spec(rows: int, max_abs: list[float], security: int) -> TableSpec:
    return TableSpec(_core.TableSpec(rows, max_abs, security), security)


def table(shape: tuple[int, int], *, max_abs: Any = 1.0, security: int = 128) -> TableSpec:
    """Describe a table of which a server will find statistics without seeing a value.

    `max_abs` bounds the absolute values, one number or one for each column; it is public, so
    choose it from what a column can be, not from the data.

    >>> import numpy as np, sudare as sd
    >>> spec = sd.table((5, 2), max_abs=[10, 1])
    >>> client = sd.TableClient(spec)
    >>> server = client.server()
    >>> X = np.array([[1, 0.5], [2, 0.25], [3, 0.75], [4, 0.5], [5, 1.0]])
    >>> moments = client.decrypt(server.moments(client.encrypt(X)))
    >>> bool(np.allclose(moments.covariance, np.cov(X, rowvar=False), atol=1e-5))
    True
    """
    if len(shape) != 2:
        raise ShapeError(f"a table has rows and columns, not the shape {tuple(shape)}")
    rows, columns = (count(side, "a side of the table") for side in shape)
    bounds = array(max_abs)
    if bounds.dtype.kind not in "iuf":
        raise InputError(f"max_abs is a number or one for each column, not {max_abs!r}")
    bounds = bounds.astype(float)
    if bounds.ndim > 1 or (bounds.ndim == 1 and bounds.size != columns):
        raise ShapeError(f"max_abs is one number or {columns}, not an array of shape {bounds.shape}")
    return _spec(rows, np.broadcast_to(bounds, (columns,)).tolist(), count(security, "security"))


class _Travels(Protocol):
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nbytes(self) -> int: ...
    def to_bytes(self) -> bytes: ...


Core = TypeVar("Core", bound=_Travels)


class _Encrypted(Opaque, Generic[Core]):
    """What a client gives to a server or gets back, by `to_bytes` and `from_bytes`.

    It pickles for your own processes.
    """

    _read: ClassVar[Any]

    def __init__(self, core: Core, spec: TableSpec) -> None:
        self._core, self._spec = core, spec

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self._core.shape

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._core.nbytes

    def to_bytes(self) -> bytes:
        """Its bytes on the wire."""
        return self._core.to_bytes()

    @classmethod
    def from_bytes(cls, spec: TableSpec, data: bytes) -> Self:
        """The same again from its bytes."""
        return cls(cls._read(spec._core, data), spec)

    def __repr__(self) -> str:
        return repr(self._core)

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return type(self).from_bytes, (self._spec, self.to_bytes())


class EncryptedTable(_Encrypted[_core.EncryptedTable]):
    """A table that only its client can read."""

    _read = _core.EncryptedTable.from_bytes


class EncryptedMoments(_Encrypted[_core.EncryptedMoments]):
    """Means and covariances that only their client can read."""

    _read = _core.EncryptedMoments.from_bytes


class TableServer(KeyedServer[_core.TableServer]):
    """Finds statistics of encrypted tables. It holds evaluation keys and nothing secret.

    It travels by `to_bytes` and `from_bytes`, and pickles for your own processes.
    """

    def __init__(self, core: _core.TableServer, spec: TableSpec) -> None:
        self._core, self._spec = core, spec

    @property
    def spec(self) -> TableSpec:
        """The table that it works on."""
        return self._spec

    def moments(self, x: EncryptedTable) -> EncryptedMoments:
        """Means and covariances of the columns."""
        if not isinstance(x, EncryptedTable):
            raise UnsupportedError(f"statistics are those of an encrypted table, not of {type(x).__name__}")
        return EncryptedMoments(self._core.moments(x._core), self._spec)

    @classmethod
    def from_bytes(cls, spec: TableSpec, data: bytes, threads: int = 0) -> TableServer:
        """A server from evaluation keys, on `threads` threads (0: one for each processor)."""
        return cls(_core.TableServer.from_bytes(spec._core, data, threads), spec)

    def __repr__(self) -> str:
        rows, columns = self._spec.shape
        megabytes = self.key_bytes / 1e6
        return f"<sudare table server ({rows}, {columns}), keys {megabytes:.1f} MB, no secret>"

    def __reduce__(self) -> tuple[Callable[..., TableServer], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return TableServer.from_bytes, (self._spec, self.to_bytes(), self.threads)


class TableClient(SecretHolder[_core.TableClient]):
    """Owns the secret key of a table: encrypts it and decrypts its statistics.

    `threads` work for it and for its server (0: one for each processor).
    """

    _again = "TableClient.from_secret_bytes(spec, data)"

    def __init__(self, spec: TableSpec, *, threads: int = 0) -> None:
        self._setup(_core.TableClient(spec._core, threads), spec, threads)

    def _setup(self, core: _core.TableClient, spec: TableSpec, threads: int) -> None:
        self._core, self._spec, self._threads = core, spec, threads

    @classmethod
    def from_secret_bytes(cls, spec: TableSpec, data: bytes, *, threads: int = 0) -> TableClient:
        """A client from the secret key that `secret_bytes` gave."""
        client = cls.__new__(cls)
        client._setup(_core.TableClient.from_secret_bytes(spec._core, data, threads), spec, threads)
        return client

    @property
    def spec(self) -> TableSpec:
        """The table."""
        return self._spec

    def server(self) -> TableServer:
        """A server for this client's table: evaluation keys only."""
        with progress("making keys") as report:
            return TableServer(self._core.server(self._threads, report), self._spec)

    def encrypt(self, x: Any) -> EncryptedTable:
        """Encrypt a table of the specified shape."""
        if isinstance(x, EncryptedTable):
            raise UnsupportedError("this table is encrypted already")
        values = plain(x)
        if values.ndim != 2:
            raise ShapeError(f"a table has rows and columns, not the shape {values.shape}")
        return EncryptedTable(self._core.encrypt(values[np.newaxis]), self._spec)

    def decrypt(self, x: EncryptedMoments) -> Moments:
        """Decrypt statistics for the owner's eyes.

        Whoever sees the digits as they are *and* the ciphertexts can compute the secret key: before
        others see a statistic, round it to fewer digits than its noise.
        """
        if not isinstance(x, EncryptedMoments):
            raise UnsupportedError(f"encrypted moments are decrypted, not {type(x).__name__}")
        mean, covariance = self._core.decrypt(x._core)
        return Moments(self._spec.shape[0], mean, covariance[0])

    def __repr__(self) -> str:
        rows, columns = self._spec.shape
        return f"<sudare table client ({rows}, {columns}), secret key hidden>"
