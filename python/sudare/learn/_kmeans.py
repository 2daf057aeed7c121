"""Clusters by Lloyd's iteration on an encrypted table."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._array import Floats
from .._errors import InputError, ShapeError
from .._frames import names
from .._matrix import Encrypted
from .._polynomial import fit
from .._values import count, real
from ._base import table
from ._iterate import Iterating, ready, shape_of

Self = TypeVar("Self", bound="KMeans")


class KMeans(Iterating):
    """Clusters by Lloyd's iteration on an encrypted table.

    `fit(X)` takes a table with elements within ±1, of a `sudare.context` with `bootstrap` and `columns`.
    `init` has the first centres, plain, a row for each. Without it, rows of the table at equal distances are
    the first centres. Centres stay encrypted, and `ctx.decrypt(model)` gives a fitted estimator. The
    server learns the shape, the parameters and, if given, the first centres.

    Polynomials for the sign (Cheon and others, ePrint 2019/1234) choose the nearer of two centres. The choice
    is sure where the squared distances differ by a tenth of `max_distance`²; both centres share a row that is
    nearer to the middle. `max_distance` bounds the distance of a row and a centre, and `least` is the least
    share of all rows that a cluster has. The owner states both. Where they do not hold, a result is wrong.
    """

    _kind: ClassVar[str] = "clusterer"

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        init: Any = None,
        max_iter: int = 10,
        max_distance: float = 2.0,
        least: float = 0.1,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.max_distance = max_distance
        self.least = least

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Fit on an encrypted table, or on plain rows.

        Raises `ShapeError` and `InputError` for other shapes and values, `UnsupportedError` for matrices of
        another layout or of a context without refreshes.
        """
        del y
        self._forget()
        rows = X if isinstance(X, Encrypted) else table(X)
        n, d = shape_of(rows) if isinstance(rows, Encrypted) else rows.shape
        k = count(self.n_clusters, "n_clusters")
        if not 1 <= k <= n:
            raise InputError(f"n_clusters is from 1 to {n} for {n} rows, not {k}")
        first = None
        if self.init is not None:
            first = table(self.init)
            if first.shape != (k, d):
                raise ShapeError(
                    f"init has a row for each of {k} centres, of {d} features, not {first.shape}"
                )
        at = np.linspace(0, n - 1, k).round().astype(int)
        if isinstance(rows, Encrypted):
            self._fit_encrypted(rows, first, at)
            return self
        centres = rows[at] if first is None else first.copy()
        self.n_iter_ = 0
        while self.n_iter_ < self._rounds():
            self.n_iter_ += 1
            nearest = _distances(rows, centres).argmin(axis=1)
            before = centres.copy()
            for i in range(k):
                if (nearest == i).any():
                    centres[i] = rows[nearest == i].mean(axis=0)
            if np.array_equal(before, centres):
                break
        self.cluster_centers_ = centres
        self.labels_ = _distances(rows, centres).argmin(axis=1).astype(np.int32)
        self.inertia_ = float(_distances(rows, centres).min(axis=1).sum())
        self._seen(d, names(X))
        return self

    def _fit_encrypted(self, x: Encrypted, first: Floats | None, at: NDArray[Any]) -> None:
        n, d = x.shape
        if x.max_abs > 1:
            raise InputError(
                f"elements are within ±1, and these have the bound {x.max_abs:g}: ctx.encrypt(x, max_abs=1)"
            )
        half, least = real(self.max_distance, "max_distance") ** 2 / 2, real(self.least, "least")
        if not (0 < half < np.inf and 0 < least < 1):
            raise InputError("max_distance is a number above zero, and least one between 0 and 1")
        over = fit(lambda t: 1 / t, (least, 1), 15)
        centres: list[Any] = list(first) if first is not None else [row @ x for row in np.eye(n)[at]]
        narrow = x * (1 / half)
        for _ in range(self._rounds()):
            shares = [share * (1 / n) for share in _shares(narrow, centres, half)]
            centres = []
            for share in shares:
                rows = share.sum().bounded(1)
                mean = (share @ x).bounded(1) * ready(rows, 5).apply(over)
                centres.append(mean.bounded(1).refresh(max_abs=1))
        self._keep(d, self._rounds(), centers=centres)

    def _read(self, parts: dict[str, Any], rounds: int) -> None:
        self.cluster_centers_, self.n_iter_ = np.array(parts["centers"]), rounds
        self._seen(self.cluster_centers_.shape[1])

    def predict(self, X: Any) -> NDArray[Any]:
        """The nearest centre of each plain row.

        Raises `NotFittedError` before a fit and while parameters are encrypted, `ShapeError` and `InputError`
        for other rows.
        """
        rows = self._inputs(X, "cluster_centers_")
        found: NDArray[Any] = _distances(rows, self.cluster_centers_).argmin(axis=1).astype(np.int32)
        return found

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Fit on plain rows, and give their clusters.

        Raises as `fit`.
        """
        del y
        found: NDArray[Any] = self.fit(X).labels_
        return found


def _distances(rows: Floats, centres: Floats) -> Floats:
    found: Floats = ((rows[:, None, :] - centres) ** 2).sum(axis=2)
    return found


#: Signs by two polynomials that spread small numbers, then two that pull to ±1.
_SPREAD = np.polynomial.Polynomial([0, 4589, 0, -16577, 0, 25614, 0, -12860]) / 1024
_PULL = np.polynomial.Polynomial([0, 35, 0, -35, 0, 21, 0, -5]) / 16


def _shares(narrow: Any, centres: list[Any], half: float) -> list[Any]:
    """How much of each row belongs to each centre, from 0 to 1; `narrow` is the table over `half`."""
    k = len(centres)
    if k == 1:
        raise InputError("one cluster is the mean: n_clusters is two or more for encrypted rows")
    found: list[Any] = [None] * k
    for i in range(k):
        for j in range(i + 1, k):
            # Half the difference of the squared distances from j and from i.
            gap = centres[i] - centres[j]
            middle = ((centres[i] + centres[j]) * gap).sum() * (1 / (2 * half))
            nearer = (narrow @ gap - middle).bounded(1)
            for step in (_SPREAD, _SPREAD, _PULL, _PULL):
                nearer = ready(nearer, 4).apply(step).bounded(1)
            nearer = ready(nearer, 4) * 0.5
            for at, part in ((i, 0.5 + nearer), (j, 0.5 - nearer)):
                found[at] = part if found[at] is None else (ready(found[at], 3) * part).bounded(1)
    return [ready(part, 4).bounded(1) for part in found]
