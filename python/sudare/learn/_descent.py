"""Logistic regression by gradient descent on encrypted rows."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from .._array import Floats
from .._errors import InputError, ShapeError
from .._frames import names
from .._matrix import Encrypted
from .._polynomial import fit
from .._values import count, real
from ._base import labels, table
from ._decide import Decides
from ._iterate import Iterating, ready, shape_of

Self = TypeVar("Self", bound="GradientLogisticRegression")


class GradientLogisticRegression(Iterating, Decides):
    """Logistic regression of two classes by gradient descent on encrypted rows.

    It minimises scikit-learn's objective, ‖w‖² / 2 + C Σ log(1 + exp(∓margin)), by `max_iter` steps from zero
    of `learning_rate` along the mean gradient. Bring features to mean zero and one size first.

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
        max_margin: int = 16,
        degree: int = 15,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.learning_rate = learning_rate
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
        for _ in range(self._rounds()):
            margins = rows @ w + b
            widest = max(widest, float(np.abs(margins).max()))
            off = rate / n * (sides - np.exp(-np.logaddexp(0.0, -margins)))
            w = w * (1 - rate / (c * n)) + off @ rows
            b += float(off.sum()) if self.fit_intercept else 0.0
        self.coef_, self.intercept_ = w[None], np.array([b])
        self.margin_range_, self.n_iter_ = widest, self._rounds()
        self._seen(rows.shape[1], names(X))
        return self

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
        share = rate / (n * widest)
        push = fit(lambda t: share * np.exp(-np.logaddexp(0.0, -widest * t)), (-1, 1), degree)
        sides = (y * share).sum(axis=1)
        levels = 4 + degree.bit_length()
        # The first step, from zero, where all sigmoids are a half.
        off = sides - share / 2
        w, b = (off @ x).bounded(1), off.sum().bounded(1)
        for _ in range(1, self._rounds()):
            w, b = ready(w, levels), ready(b, levels)
            margins = x @ w
            margins = (margins + b if self.fit_intercept else margins).bounded(1)
            off = sides - margins.apply(push)
            kept = w if np.isinf(c) else w * (1 - rate / (c * n))
            w, b = (kept + off @ x).bounded(1), (b + off.sum()).bounded(1)
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
