"""Statistics of encrypted tables: means, variances, covariances, correlations of columns."""

from __future__ import annotations

import json
import warnings
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
from ._release import Release, declared, wanted
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
    """Decrypted statistics of a table's columns, with n - 1 degrees of freedom as in pandas.

    Each comes with a bound on its error, which follows from the table's size and the bounds of the
    columns, and from the noise of a release.
    """

    rows: int
    mean: Floats
    covariance: Floats
    mean_error: Floats
    """A bound on the error of each mean."""
    covariance_error: Floats
    """A bound on the error of each covariance."""

    @property
    def variance(self) -> Floats:
        """The variance of each column."""
        return self.covariance.diagonal().copy()

    @property
    def variance_error(self) -> Floats:
        """A bound on the error of each variance."""
        return self.covariance_error.diagonal().copy()

    @property
    def std(self) -> Floats:
        """The standard deviation of each column; 0 where noise left a variance below zero."""
        return np.sqrt(np.maximum(self.variance, 0.0))

    @property
    def std_error(self) -> Floats:
        """A bound on the error of each standard deviation."""
        low, high = (np.sqrt(np.maximum(v, 0.0)) for v in self._variances())
        return np.maximum(high - self.std, self.std - low)

    @property
    def correlation(self) -> Floats:
        """Pearson correlations; not numbers for columns whose variance is not above its error.

        Those are constant columns, and columns that their bounds are far too large for.
        """
        std = self._known(self.std)
        found = self.covariance / np.outer(std, std)
        np.fill_diagonal(found, std / std)
        return np.clip(found, -1.0, 1.0)

    @property
    def correlation_error(self) -> Floats:
        """A bound on the error of each correlation; not a number where there is none."""
        found = self.correlation
        worst = np.zeros_like(found)
        for variances in self._variances():
            std = self._known(np.sqrt(np.abs(variances)))
            for covariance in (
                self.covariance - self.covariance_error,
                self.covariance + self.covariance_error,
            ):
                corner = np.clip(covariance / np.outer(std, std), -1.0, 1.0)
                worst = np.maximum(worst, np.abs(corner - found))
        np.fill_diagonal(worst, 0.0 * self._known(self.std))
        # And what doubles round in the quotient.
        return worst + 1e-15

    def _variances(self) -> tuple[Floats, Floats]:
        """The least and the largest that each variance can be."""
        return self.variance - self.variance_error, self.variance + self.variance_error

    def _known(self, per_column: Floats) -> Floats:
        """The values of columns that have a variance above its error."""
        return np.where(self.variance > self.variance_error, per_column, np.nan)

    def __repr__(self) -> str:
        lines = [
            f"<sudare moments of {self.rows} rows",
            "column            mean       ±        variance       ±",
        ]
        columns = zip(self.mean, self.mean_error, self.variance, self.variance_error, strict=True)
        for j, (mean, mean_error, variance, variance_error) in enumerate(columns):
            lines.append(f"{j:>6} {mean:>15.8g} {mean_error:7.1e} {variance:>15.8g} {variance_error:7.1e}")
            if j == 9 and len(self.mean) > 10:
                lines.append(f"and {len(self.mean) - 10} more columns")
                break
        return "\n".join(lines) + ">"


class TableSpec:
    """What the key holder and the server know of a table: its shape and bounds. Make it by `table`.

    It travels as JSON, and pickles for your own processes.
    """

    def __init__(self, core: _core.TableSpec, security: int, release: Release | None) -> None:
        self._core, self._security, self._release = core, security, release

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._core.shape

    @property
    def max_abs(self) -> Floats:
        """The bound on the absolute values of each column."""
        return np.array(self._core.max_abs)

    @property
    def release(self) -> Release | None:
        """What may be shown to others under one key."""
        return self._release

    @property
    def mean_error(self) -> Floats:
        """A bound on the error that each mean will have; released, if there are releases."""
        return self._core.errors()[0]

    @property
    def covariance_error(self) -> Floats:
        """A bound on the error that each covariance will have."""
        errors: Floats = self._core.errors()[1][0]
        return errors

    def to_json(self) -> str:
        """The specification as JSON."""
        release = self._release
        return json.dumps(
            {
                "rows": self.shape[0],
                "max_abs": self._core.max_abs,
                "security": self._security,
                "release": None if release is None else [release.count, release.security],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> TableSpec:
        """Read a specification; everything in it is checked again."""
        try:
            loaded = json.loads(text)
            rows, bounds, security = loaded["rows"], list(loaded["max_abs"]), loaded["security"]
            release = None if loaded["release"] is None else Release(*loaded["release"])
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"this is no specification of a table: {error}") from None
        return table((rows, len(bounds)), max_abs=bounds, security=security, release=release)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSpec) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<sudare table ({rows}, {columns}), {self._security}-bit security>"

    def __reduce__(self) -> tuple[Callable[..., TableSpec], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return _spec, (self.shape[0], self._core.max_abs, self._security, self._release)


def _spec(rows: int, max_abs: list[float], security: int, release: Release | None) -> TableSpec:
    return TableSpec(_core.TableSpec(rows, max_abs, security, declared(release)), security, release)


def table(
    shape: tuple[int, int], *, max_abs: Any = 1.0, security: int = 128, release: Release | None = None
) -> TableSpec:
    """Describe a table of which a server will find statistics without seeing a value.

    `max_abs` bounds the absolute values, one number or one for each column; it is public, so
    choose it from what a column can be, not from the data. Errors are in proportion to it, for each
    column to its own: `TableSpec.mean_error` and `covariance_error` tell them beforehand. A `release`
    declares how many results will be shown to others.

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
    return _spec(rows, np.broadcast_to(bounds, (columns,)).tolist(), count(security, "security"), release)


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
        encrypted = EncryptedTable(self._core.encrypt(values[np.newaxis]), self._spec)
        self._warn(values)
        return encrypted

    def _warn(self, values: Floats) -> None:
        """Tells the owner of columns whose variance will have fewer than two digits."""
        variance, errors = values.var(axis=0, ddof=1), self._spec.covariance_error.diagonal()
        for j in np.flatnonzero((variance > 0) & (variance < 100 * errors)):
            warnings.warn(
                f"column {j} has the variance {variance[j]:.1e}, which comes back within {errors[j]:.1e};"
                f" declare a max_abs that is nearer to its values than {self._spec.max_abs[j]:g},"
                " or subtract a public number from them first",
                stacklevel=3,
            )

    @property
    def releases_left(self) -> int:
        """Results that may still be shown under this key, of those that the table declares."""
        return self._core.releases_left

    def decrypt(self, x: EncryptedMoments, *, release: bool = False) -> Moments:
        """Decrypt statistics for the owner's eyes, or with `release` for others to see.

        Whoever sees the digits of a private decryption *and* the ciphertexts can compute the secret
        key. With `release` noise hides that, and is part of the errors that the moments come with; the
        table has to declare it. The count of releases is in what `secret_bytes` gives: save it again
        after each.
        """
        if not isinstance(x, EncryptedMoments):
            raise UnsupportedError(f"encrypted moments are decrypted, not {type(x).__name__}")
        (mean, covariance), (mean_error, covariance_error) = self._core.decrypt(x._core, wanted(release))
        return Moments(self._spec.shape[0], mean, covariance[0], mean_error, covariance_error[0])

    def __repr__(self) -> str:
        rows, columns = self._spec.shape
        return f"<sudare table client ({rows}, {columns}), secret key hidden>"
