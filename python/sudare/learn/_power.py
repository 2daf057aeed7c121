"""Principal components by power iteration on an encrypted table."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np

from .._array import Floats
from .._errors import InputError
from .._frames import names
from .._matrix import Encrypted
from .._polynomial import fit
from .._values import count, real
from ._axes import oriented
from ._base import table
from ._iterate import Iterating, ready, shape_of
from ._sums import of_rows

Self = TypeVar("Self", bound="PowerPCA")

#: The length of vectors between iterations: under one, for what a polynomial is off.
KEPT = 0.95


class PowerPCA(Iterating):
    """The first principal components, by power iteration on an encrypted table.

    `fit(X)` takes a table of a `sudare.context` with `bootstrap` and `columns`. `max_variance` is the owner's
    statement of a bound on the largest variance along any axis, no less than that and at most some four times
    as much; it is public. Components stay encrypted, and `ctx.decrypt(model)` gives a fitted estimator. The
    server learns the shape and the bounds. For components in one pass see `PCA`.

    Each of `max_iter` iterations multiplies by the covariance, and takes what earlier components have out.
    The length is kept between a fifth and one by a polynomial for 1/√t.
    """

    _kind: ClassVar[str] = "transformer"

    def __init__(self, n_components: int = 1, *, max_iter: int = 8, max_variance: float = 1.0) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.max_variance = max_variance

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Fit on an encrypted table, or on plain rows.

        Raises `ShapeError` and `InputError` for other shapes and values, `UnsupportedError` for matrices of
        another layout or of a context without refreshes.
        """
        del y
        self._forget()
        k = count(self.n_components, "n_components")
        rows = X if isinstance(X, Encrypted) else table(X)
        n, d = shape_of(rows) if isinstance(rows, Encrypted) else rows.shape
        if not 1 <= k <= min(n, d):
            raise InputError(f"n_components is from 1 to {min(n, d)}, for {n} rows of {d} features, not {k}")
        if isinstance(rows, Encrypted):
            self._fit_encrypted(rows, n, d, k)
            return self
        found = of_rows(rows)
        axes: list[Floats] = []
        sizes = []
        for _ in range(k):
            v = np.ones(d) / np.sqrt(d)
            size = 0.0
            for _ in range(self._rounds()):
                for axis in axes:
                    v = v - (v @ axis) * axis
                v = found.covariance @ v
                size = float(np.linalg.norm(v))
                v = v / size if size > 0 else np.ones(d) / np.sqrt(d)
            axes.append(v)
            sizes.append(size)
        self._set(np.array(axes), np.array(sizes), found.mean, self._rounds())
        self._seen(d, names(X))
        return self

    def _fit_encrypted(self, x: Encrypted, n: int, d: int, k: int) -> None:
        largest = real(self.max_variance, "max_variance")
        if not 0 < largest < np.inf:
            raise InputError("max_variance is a number above zero")
        # The table over what makes its largest singular value one at most.
        scaled = x * float(1 / np.sqrt((n - 1) * largest))
        mean = x.sum(axis=0) * (1 / n)
        centred = (scaled - scaled.sum(axis=0) * (1 / n)).bounded(1)
        shorten = fit(lambda t: KEPT / np.sqrt(t), (0.04, 1), 15)
        axes: list[Any] = []
        lengths: list[Any] = []
        for _ in range(k):
            v: Any = np.ones(d) / np.sqrt(d)
            for _ in range(self._rounds()):
                for axis in axes:
                    v = ready((-((axis * v).sum() * KEPT**-2 * axis) + v).bounded(1), 7)
                u = ((centred @ v).bounded(1) @ centred).bounded(1).refresh(max_abs=1)
                square = (u @ u).bounded(1)
                v = (u * ready(square, 5).apply(shorten)).bounded(1).refresh(max_abs=1)
            axes.append(v)
            lengths.append(square)
        self._keep(d, self._rounds(), components=axes, squares=lengths, mean=mean)

    def _read(self, parts: dict[str, Any], rounds: int) -> None:
        axes = np.array(parts["components"])
        axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        sizes = np.sqrt(np.maximum(np.array(parts["squares"], dtype=np.float64).ravel(), 0.0)) / KEPT
        self._set(axes, sizes * float(self.max_variance), np.asarray(parts["mean"]), rounds)
        self._seen(axes.shape[1])

    def _set(self, axes: Floats, sizes: Floats, mean: Floats, rounds: int) -> None:
        self.components_ = oriented(axes)
        self.explained_variance_, self.mean_, self.n_iter_ = sizes, mean, rounds

    def transform(self, X: Any) -> Floats:
        """Plain rows along the components.

        Raises `NotFittedError` before a fit and while parameters are encrypted, `ShapeError` and `InputError`
        for other rows.
        """
        found: Floats = (self._inputs(X, "components_") - self.mean_) @ self.components_.T
        return found

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit on plain rows, and transform them.

        Raises as `fit` and `transform`.
        """
        del y
        self.fit(X)
        return self.transform(X)
