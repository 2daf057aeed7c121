"""Columns brought to one size, and principal components, from moments."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

import numpy as np

from .._array import Floats
from .._errors import InputError
from .._moments import Moments
from ._fits import FromMoments


class _Transformer(FromMoments):
    """What transformers have in common."""

    _kind: ClassVar[str] = "transformer"

    def transform(self, X: Any) -> Floats:
        """Plain rows, transformed.

        Raises `NotFittedError` before a fit and while parameters are encrypted, `ShapeError` and `InputError`
        for other rows.
        """
        raise NotImplementedError

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit on plain rows, and transform them.

        Raises as `fit` and `transform`.
        """
        del y
        return self.fit(X).transform(X)


class StandardScaler(_Transformer):
    """Columns less their means over their deviations, as `sklearn.preprocessing.StandardScaler`.

    From encrypted moments. The server learns the plan: numbers of rows and columns, and bounds. The owner
    sees the moments. A column whose variance is not above its error is taken for a constant, and is not
    divided.
    """

    def __init__(self, *, with_mean: bool = True, with_std: bool = True) -> None:
        self.with_mean = with_mean
        self.with_std = with_std

    def _finish(self, found: Moments, features: int) -> None:
        del features
        share = (found.rows - 1) / found.rows
        self.n_samples_seen_ = found.rows
        self.mean_, self.mean_error_ = found.mean, found.mean_error
        self.var_, self.var_error_ = np.maximum(share * found.variance, 0.0), share * found.variance_error
        # What rounding alone makes of a constant.
        noise = np.maximum(self.var_error_, 2.0**-48 * found.mean**2)
        self.scale_ = np.where(self.var_ > noise, np.sqrt(self.var_), 1.0)

    def transform(self, X: Any) -> Floats:
        rows = self._inputs(X, "scale_")
        moved = rows - self.mean_ if self.with_mean else rows
        return moved / self.scale_ if self.with_std else moved

    transform.__doc__ = _Transformer.transform.__doc__

    def inverse_transform(self, X: Any) -> Floats:
        """The rows that `transform` took.

        Raises as `transform`.
        """
        rows = self._inputs(X, "scale_")
        wide = rows * self.scale_ if self.with_std else rows
        return wide + self.mean_ if self.with_mean else wide


class PCA(_Transformer):
    """Principal components, as `sklearn.decomposition.PCA`, from encrypted means and covariances.

    `n_components` is a number of components, a share of the variance between 0 and 1, or None for all. The
    server learns the plan: numbers of rows and columns, and bounds. The owner sees the moments.
    """

    def __init__(self, n_components: float | None = None, *, whiten: bool = False) -> None:
        self.n_components = n_components
        self.whiten = whiten

    def _finish(self, found: Moments, features: int) -> None:
        values, axes = np.linalg.eigh(found.covariance)
        values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1].T
        total, most = values.sum(), min(found.rows, features)
        wanted: Any = most if self.n_components is None else self.n_components
        if isinstance(wanted, (float, np.floating)) and 0 < wanted < 1:
            shares = np.cumsum(values / total)
            k = min(int(np.searchsorted(shares, wanted, side="right")) + 1, most)
        else:
            k = _whole(wanted)
            if not 1 <= k <= most:
                raise InputError(
                    f"n_components is from 1 to {most}, for {found.rows} rows of {features} features, not {k}"
                )
        self.n_samples_, self.n_components_, self.mean_ = found.rows, k, found.mean
        self.components_ = oriented(axes[:k])
        self.explained_variance_ = values[:k]
        self.explained_variance_ratio_ = values[:k] / (total if total > 0 else 1.0)
        self.singular_values_ = np.sqrt(values[:k] * (found.rows - 1))
        self.noise_variance_ = float(values[k:most].mean()) if k < most else 0.0
        # Weyl's inequality, and Davis and Kahan's in the form of Yu, Wang and Samworth (2015).
        off = float(np.linalg.norm(found.covariance_error, 2)) + features * 2.0**-50 * float(values[0])
        self.explained_variance_error_ = np.full(k, off)
        padded = np.concatenate([[np.inf], values, [-np.inf if k == features else 0.0]])
        gaps = np.minimum(padded[:k] - padded[1 : k + 1], padded[1 : k + 1] - padded[2 : k + 2])
        self.components_error_ = np.where(gaps > 0, 2**1.5 * off / np.maximum(gaps, 1e-300), np.inf)

    def transform(self, X: Any) -> Floats:
        moved: Floats = (self._inputs(X, "components_") - self.mean_) @ self.components_.T
        return moved / self._size() if self.whiten else moved

    transform.__doc__ = _Transformer.transform.__doc__

    def inverse_transform(self, X: Any) -> Floats:
        """The rows nearest to those that `transform` took, from their components.

        Raises `NotFittedError` before a fit and while parameters are encrypted.
        """
        self._require("components_")
        parts = np.asarray(X, dtype=np.float64) * (self._size() if self.whiten else 1.0)
        found: Floats = parts @ self.components_ + self.mean_
        return found

    def _size(self) -> Floats:
        size = np.sqrt(self.explained_variance_)
        return np.where(size > 0, size, np.inf)

    explained_variance_error_: Floats
    """A bound on what the errors of the moments do to each variance."""
    components_error_: Floats
    """A bound on how far each component is from that of exact moments; infinite for equal variances."""


def oriented(axes: Floats) -> Floats:
    """The same axes with signs as scikit-learn has them: the largest element of each is above zero."""
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return axes * np.where(signs == 0, 1.0, signs)[:, None]


def _whole(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(
            f"n_components is a whole number, a share between 0 and 1, or None, not {value!r}"
        ) from None
