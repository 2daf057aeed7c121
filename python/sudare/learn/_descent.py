"""Logistic regression by gradient descent on encrypted rows."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from .._array import Floats
from .._errors import InputError, ShapeError
from .._frames import names
from .._matrix import Encrypted
from .._polynomial import Polynomial, fit
from .._values import count, real
from ._base import labels, table
from ._decide import Decides
from ._iterate import Iterating, ready, shape_of

Self = TypeVar("Self", bound="GradientLogisticRegression")


class GradientLogisticRegression(Iterating, Decides):
    """Logistic regression of two classes by gradient descent on encrypted rows.

    It minimises scikit-learn's objective, ‖w‖² / 2 + C Σ log(1 + exp(∓margin)), by `max_iter` steps from zero
    of `learning_rate` along the mean gradient. Bring features to mean zero and one size first.

    With `batch_size`, a step takes so many rows only: the next ones at each step, the first ones again
    after the last. Shuffle rows before. Encrypted rows are taken by whole ciphertexts, so the size is a
    multiple of the rows that one holds, 2^15 / `columns` in set A.

    `fit(X, y)` takes a table and a column of zeros and ones, both of one `sudare.context` with `bootstrap`
    and `columns`. There the sigmoid is a polynomial of `degree` on margins within ±`max_margin`, which is
    your statement: a margin outside gives a wrong result. `coef_` and `intercept_` are then encrypted, and
    `ctx.decrypt(model)` gives a fitted estimator. The server learns the shapes, and nothing of rows, labels
    or coefficients. An iteration takes eight levels, nine with degree 31, and refreshes the coefficients
    alone.

    Plain rows are fitted in the clear with the exact sigmoid, and `margin_range_` is the largest margin met:
    try a sample, and state a wider range. For a fit in one pass see `LogisticRegression`.
    """

    def __init__(
        self,
        *,
        C: float = np.inf,
        fit_intercept: bool = True,
        max_iter: int = 10,
        learning_rate: float = 1.0,
        batch_size: int | None = None,
        max_margin: int = 16,
        degree: int = 15,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_margin = max_margin
        self.degree = degree

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Fit on an encrypted table and an encrypted column of labels, or on plain ones.

        Raises `ShapeError` and `InputError` for other shapes and values, `UnsupportedError` for matrices of
        another layout or of a context without refreshes.
        """
        rate, c = real(self.learning_rate, "learning_rate"), real(self.C, "C")
        if not (0 < rate < np.inf and c > 0):
            raise InputError("learning_rate and C are numbers above zero, and only C can be infinite")
        self._forget()
        if isinstance(X, Encrypted):
            self._fit_encrypted(X, y, rate, c)
            return self
        rows = table(X)
        found = labels(y, len(rows))
        self.classes_, sides = np.unique(found, return_inverse=True)
        if len(self.classes_) != 2:
            raise InputError(
                "Only binary classification is supported. The type of the target is multiclass or 1 class: "
                f"{len(self.classes_)} classes"
            )
        n, w, b, widest = len(rows), np.zeros(rows.shape[1]), 0.0, 0.0
        runs = self._runs(n)
        for step in range(self._rounds()):
            run = runs[step % len(runs)]
            margins = rows[run] @ w + b
            widest = max(widest, float(np.abs(margins).max()))
            off = rate / len(margins) * (sides[run] - np.exp(-np.logaddexp(0.0, -margins)))
            w = w * (1 - rate / (c * n)) + off @ rows[run]
            b += float(off.sum()) if self.fit_intercept else 0.0
        self.coef_, self.intercept_ = w[None], np.array([b])
        self.margin_range_, self.n_iter_ = widest, self._rounds()
        self._seen(rows.shape[1], names(X))
        return self

    def _runs(self, n: int) -> list[slice]:
        """The rows of each step, until all have been taken."""
        size = n if self.batch_size is None else count(self.batch_size, "batch_size")
        if size < 1:
            raise InputError("batch_size is a number of rows, one or more, or None for all of them")
        return [slice(at, min(at + size, n)) for at in range(0, n, size)]

    def _fit_encrypted(self, x: Encrypted, y: Any, rate: float, c: float) -> None:
        n, d = shape_of(x)
        if not isinstance(y, Encrypted) or y.shape != (n, 1):
            raise ShapeError(
                f"labels are an encrypted column of zeros and ones, ctx.encrypt(y[:, None]), ({n}, 1)"
            )
        # Coefficients and margins are kept over the widest margin, so that all of them are within one.
        widest, degree = count(self.max_margin, "max_margin"), count(self.degree, "degree")
        if widest < 1:
            raise InputError("max_margin is a bound on margins, one or more")

        # The rows of a run, their labels' part of the gradient, and the margins' as a polynomial.
        def batch(run: slice) -> tuple[Encrypted, Encrypted, Polynomial]:
            share = rate / ((run.stop - run.start) * widest)
            sigmoid = fit(lambda t: share * np.exp(-np.logaddexp(0.0, -widest * t)), (-1, 1), degree)
            return x[run], (y[run] * share).sum(axis=1), sigmoid

        runs = self._runs(n)[: self._rounds()]
        batches = [batch(run) for run in runs]
        # The first step, from zero, where all sigmoids are a half.
        rows, sides, _ = batches[0]
        off = sides - rate / (runs[0].stop * widest) / 2
        w, b = (off @ rows).bounded(1), off.sum().bounded(1)
        levels = 4 + degree.bit_length()
        for step in range(1, self._rounds()):
            rows, sides, sigmoid = batches[step % len(runs)]
            w, b = ready(w, levels), ready(b, levels)
            margins = rows @ w
            margins = (margins + b if self.fit_intercept else margins).bounded(1)
            off = sides - margins.apply(sigmoid)
            kept = w if np.isinf(c) else w * (1 - rate / (c * n))
            w, b = (kept + off @ rows).bounded(1), (b + off.sum()).bounded(1)
        parts = {"coef": w * widest, "intercept": b * widest} if self.fit_intercept else {"coef": w * widest}
        self._keep(d, self._rounds(), **parts)

    def _read(self, parts: dict[str, Any], rounds: int) -> None:
        self.classes_, self.n_iter_ = np.array([0, 1]), rounds
        self.coef_ = np.asarray(parts["coef"])[None]
        self.intercept_ = np.array([float(parts.get("intercept", 0.0))])
        self._seen(self.coef_.shape[1])

    def _scores(self, rows: Floats) -> Floats:
        margins = rows @ self.coef_[0] + self.intercept_[0]
        chances: Floats = -np.logaddexp(0.0, np.column_stack([margins, -margins]))
        return chances
