"""Statistics of encrypted tables: means, variances, covariances, correlations of columns."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from . import _core, _html
from ._array import Floats
from ._errors import FormatError, InputError, ShapeError
from ._files import Travels
from ._plan import Plan
from ._release import Release, declared
from ._spec import is_data
from ._values import array, count

__all__ = ["Moments", "planned"]

#: What a file of statistics says that it is.
KIND = "statistics"


@dataclass(frozen=True)
class Moments(Travels):
    """Decrypted statistics of a table's columns, with n - 1 degrees of freedom as in pandas.

    Each comes with a bound on its error, which follows from the table's size and the bounds of the
    columns, and from the noise of a release. `save` writes them for `sudare.load`, not encrypted.

    >>> client = sd.Client(sd.table((4, 2), max_abs=10))
    >>> moments = client.decrypt(client.server().moments(client.encrypt(np.arange(8.0).reshape(4, 2))))
    >>> moments.mean.round(3)
    array([3., 4.])
    """

    rows: int
    mean: Floats
    covariance: Floats
    mean_error: Floats
    """A bound on the error of each mean."""
    covariance_error: Floats
    """A bound on the error of each covariance."""
    columns: tuple[str, ...] = ()
    """The columns' names: a data frame's, or what `named` says; else their numbers."""

    def __post_init__(self) -> None:
        given = tuple(str(name) for name in self.columns) or tuple(map(str, range(len(self.mean))))
        if len(given) != len(self.mean) or len(set(given)) != len(given):
            raise ShapeError(f"{len(self.mean)} columns take that many different names, not {given}")
        object.__setattr__(self, "columns", given)

    def named(self, columns: Iterable[Any]) -> Moments:
        """The same statistics with names for the columns.

        Raises `ShapeError` unless there is a different name for each.
        """
        return replace(self, columns=tuple(columns))

    def __getitem__(self, columns: Any) -> Moments:
        """The statistics of some columns, by name or number: `moments["age"]`, `moments[["age", "height"]]`.

        Raises `InputError` for a column that there is not.
        """
        wanted = columns if isinstance(columns, (list, tuple)) else [columns]
        at = [self._at(column) for column in wanted]
        square = np.ix_(at, at)
        return Moments(
            self.rows,
            self.mean[at],
            self.covariance[square],
            self.mean_error[at],
            self.covariance_error[square],
            tuple(self.columns[i] for i in at),
        )

    def _at(self, column: Any) -> int:
        if isinstance(column, (int, np.integer)) and -len(self.mean) <= column < len(self.mean):
            return int(column) % len(self.mean)
        if column not in self.columns:
            raise InputError(f"there is no column {column!r}; there are {', '.join(self.columns)}")
        return self.columns.index(column)

    def __add__(self, other: Moments) -> Moments:
        """The statistics of the rows of both: of two hospitals' tables together, for example.

        Errors are bounds again. Columns are those of both, in this order.

        Raises `ShapeError` for tables of other columns.
        """
        if not isinstance(other, Moments):
            return NotImplemented
        if self.columns != other.columns:
            raise ShapeError(f"columns {self.columns} and {other.columns} do not go together")
        n, m = self.rows, other.rows
        rows, gap = n + m, other.mean - self.mean
        off = self.mean_error + other.mean_error
        weight, share = n * m / rows, 1 / (rows - 1)
        between = np.outer(gap, gap)
        slack = np.outer(np.abs(gap), off) + np.outer(off, np.abs(gap)) + np.outer(off, off)
        covariance = ((n - 1) * self.covariance + (m - 1) * other.covariance + weight * between) * share
        error = (n - 1) * self.covariance_error + (m - 1) * other.covariance_error + weight * slack
        return Moments(
            rows,
            (n * self.mean + m * other.mean) / rows,
            covariance,
            (n * self.mean_error + m * other.mean_error) / rows + 1e-15 * np.abs(self.mean),
            error * share + 1e-15 * np.abs(covariance),
            self.columns,
        )

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

    def _saved(self) -> bytes:
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        values = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in arrays.items()}
        return json.dumps({"sudare": KIND, **values}, indent=1, allow_nan=False).encode()

    @classmethod
    def _read(cls, given: dict[str, Any]) -> Moments:
        wanted = {f.name for f in fields(cls)}
        if set(given) != wanted | {"sudare"}:
            raise FormatError(
                f"the file of statistics does not have {', '.join(sorted(wanted))} alone; copy it again"
            )
        rows, columns = given["rows"], given["columns"]
        if type(rows) is not int or not 2 <= rows < 2**53:
            raise FormatError("the statistics have an impossible number of rows; copy them again")
        if not isinstance(columns, list) or not all(map(_is_text, columns)):
            raise FormatError("the statistics do not have a name for each column, as text; copy them again")
        if len(set(columns)) != len(columns):
            raise FormatError("two columns of the statistics have one name; copy them again")
        k, arrays = len(columns), {}
        for name in wanted - {"rows", "columns"}:
            shape = (k, k) if name.startswith("covariance") else (k,)
            try:
                arrays[name] = np.array(given[name], dtype=np.float64)
            except (ValueError, TypeError, OverflowError):
                arrays[name] = np.empty(0)
            if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
                raise FormatError(
                    f"the statistics of {k} columns do not have real numbers of shape {shape} for {name}; "
                    "copy them again"
                )
        found = cls(rows, **arrays, columns=tuple(columns))
        errors = [found.mean_error, found.covariance_error]
        if any((error < 0).any() for error in errors) or (found.variance < -found.variance_error).any():
            raise FormatError("an error or a variance of the statistics is below zero; copy them again")
        return found

    def _variances(self) -> tuple[Floats, Floats]:
        """The least and the largest that each variance can be."""
        return self.variance - self.variance_error, self.variance + self.variance_error

    def _known(self, per_column: Floats) -> Floats:
        """The values of columns that have a variance above its error."""
        return np.where(self.variance > self.variance_error, per_column, np.nan)

    def _repr_html_(self) -> str:
        return _html.moments(self)

    def __repr__(self) -> str:
        lines = [
            f"<sudare moments of {self.rows} rows",
            "column                 mean       ±        variance       ±",
        ]
        columns = zip(self.mean, self.mean_error, self.variance, self.variance_error, strict=True)
        for j, (mean, mean_error, variance, variance_error) in enumerate(columns):
            # Names may come from anybody, and this goes to a terminal.
            name = "".join(c if c.isprintable() else "?" for c in self.columns[j][:12]).ljust(12)
            lines.append(f"{name}{mean:>15.8g} {mean_error:7.1e} {variance:>15.8g} {variance_error:7.1e}")
            if j == 9 and len(self.mean) > 10:
                lines.append(f"and {len(self.mean) - 10} more columns")
                break
        return "\n".join(lines) + ">"


def _is_text(name: Any) -> bool:
    """Whether it is text: JSON has halves of characters, too."""
    return isinstance(name, str) and not any("\ud800" <= c <= "\udfff" for c in name)


def moments(plan: Plan, found: Floats, released: bool, columns: tuple[str, ...] = ()) -> Moments:
    """Statistics from the result of a plan: means in the first row, covariances under it."""
    errors, (spec,) = plan._core.errors(released)[0], plan.inputs.values()
    return Moments(spec.shape[0], found[0], found[1:], errors[0], errors[1:], columns)


def names_of(x: Any) -> tuple[str, ...]:
    """The names of a data frame's columns."""
    columns = getattr(x, "columns", None)
    return () if columns is None else tuple(str(name) for name in columns)


def warn_of_columns(plan: Plan, values: Floats) -> None:
    """Tells the owner of columns whose variance will have fewer than two digits."""
    variance, errors = values.var(axis=0, ddof=1), plan.errors[1:].diagonal()
    for j in np.flatnonzero((variance > 0) & (variance < 100 * errors)):
        warnings.warn(
            f"column {j} has the variance {variance[j]:.1e}, which comes back within {errors[j]:.1e};"
            f" declare a max_abs that is nearer to its values than {plan.max_abs[j]:g},"
            " or subtract a public number from them first",
            stacklevel=4,
        )


def planned(shape: Any, *, max_abs: Any, security: int, release: Release | None) -> Plan:
    """The plan for a table's statistics: see `sudare.table`."""
    shape = array(shape).shape if is_data(shape) else shape
    if len(shape) != 2:
        raise ShapeError(f"a table has rows and columns, not the shape {tuple(shape)}")
    rows, columns = (count(side, "a side of the table") for side in shape)
    bounds = array(max_abs)
    if bounds.dtype.kind not in "iuf":
        raise InputError(f"max_abs is a number or one for each column, not {max_abs!r}")
    bounds = bounds.astype(float)
    if bounds.ndim > 1 or (bounds.ndim == 1 and bounds.size != columns):
        raise ShapeError(f"max_abs is one number or {columns}, not an array of shape {bounds.shape}")
    each = np.broadcast_to(bounds, (columns,)).tolist()
    return Plan(_core.Plan.moments(rows, each, count(security, "security"), declared(release)))
