"""Logistic regression from the moments of each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._array import Floats
from .._errors import InputError
from .._moments import Moments
from .._values import count, real
from ._base import not_negative
from ._classes import FromClasses
from ._decide import Decides
from ._sums import Groups


class LogisticRegression(FromClasses, Decides):
    """Logistic regression, in the place of `sklearn.linear_model.LogisticRegression`, from encrypted moments.

    It minimises the expected loss of normal distributions that have each class's mean and covariance, with
    the penalty ‖w‖² / 2C n: scikit-learn's objective, with normal distributions in place of the rows. Labels
    nearly always agree with scikit-learn's, coefficients do as far as margins are close to normal. Of more
    than two classes each is fitted against all others. It costs the server one pass over the rows,
    no function of encrypted numbers, and no refresh.

    Labels are secret too: the server learns the plan, with the number of classes, and not which row is of
    which. The owner sees the moments of each class.
    """

    _common = False

    def __init__(
        self, *, C: float = 1.0, fit_intercept: bool = True, max_iter: int = 100, tol: float = 1e-8
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _finish(self, found: Groups, features: int) -> None:
        self._means(found)
        c = real(self.C, "C")
        if not c > 0:
            raise InputError(f"C is a number above zero, not {c:g}")
        groups = list(found.values())
        rows = sum(g.rows for g in groups)
        singled = range(1, 2) if len(groups) == 2 else range(len(groups))
        fits = [
            _normal_fit(
                [_Part(g.rows / rows, 1.0 if i == one else -1.0, g) for i, g in enumerate(groups)],
                1 / (c * rows),
                bool(self.fit_intercept),
                count(self.max_iter, "max_iter"),
                not_negative(self.tol, "tol"),
            )
            for one in singled
        ]
        self.coef_ = np.array([w[:features] for w, _ in fits])
        self.intercept_ = np.array([w[features] for w, _ in fits])
        self.n_iter_ = np.array([steps for _, steps in fits])

    def decision_function(self, X: Any) -> Floats:
        """The log-odds of each class against all others; of two classes those of the second.

        Raises as `predict`.
        """
        found: Floats = self._inputs(X, "classes_") @ self.coef_.T + self.intercept_
        return np.ravel(found) if len(self.classes_) == 2 else found

    def _scores(self, rows: Floats) -> Floats:
        # Logarithms of what each one tells of its class: sums of probabilities are brought to one.
        found = rows @ self.coef_.T + self.intercept_
        if len(self.classes_) == 2:
            found = np.hstack([-found, found])
        chances: Floats = -np.logaddexp(0.0, -found)
        return chances


class _Part(NamedTuple):
    """A class: its share of the rows, 1 or −1 for the side it should be on, and its moments."""

    share: float
    side: float
    moments: Moments


#: Points of a standard normal distribution, and their probabilities: sums are integrals to all digits.
_POINTS = np.linspace(-8.0, 8.0, 257)
_WEIGHTS = np.exp(-(_POINTS**2) / 2) / np.exp(-(_POINTS**2) / 2).sum()


def _normal_fit(
    parts: Sequence[_Part], penalty: float, intercept: bool, rounds: int, tol: float
) -> tuple[Floats, int]:
    """Weights and intercept, by Newton's method, and its steps.

    They minimise Σ share · E log(1 + exp(−side (w·x + b))) + penalty ‖w‖² / 2.
    x is normal, and so is the margin t = w·x + b; given t, x is m(t) = μ + Σw (t − E t) / var t on the
    average, with the covariance Σ − Σw wᵀΣ / var t. So gradient and Hessian, E f'(t) x and E f''(t) x xᵀ, are
    sums over points of t. Columns are brought to one size, and moved to their mean where there is an
    intercept.
    """
    d = len(parts[0].moments.mean)
    centre = sum(p.share * p.moments.mean for p in parts) if intercept else np.zeros(d)
    second = sum(p.share * (p.moments.variance + (p.moments.mean - centre) ** 2) for p in parts)
    size = np.sqrt(np.maximum(np.asarray(second), 1e-300))
    known = size > 1e-140
    size = np.where(known, size, 1.0)
    # The penalty is on weights of the given columns.
    ridge = np.append(penalty / size**2, 0.0)
    shaped = [
        (
            p.share,
            p.side,
            np.append((p.moments.mean - centre) / size, float(intercept)),
            np.pad(p.moments.covariance / np.outer(size, size), (0, 1)),
        )
        for p in parts
    ]

    def at(w: Floats, slopes: bool) -> tuple[float, Floats, Floats]:
        value, gradient, hessian = float(ridge @ w**2) / 2, ridge * w, np.diag(ridge)
        for share, side, mean, covariance in shaped:
            along = covariance @ w
            variance = max(float(w @ along), 0.0)
            t = mean @ w + np.sqrt(variance) * _POINTS
            value += share * float(_WEIGHTS @ np.logaddexp(0.0, -side * t))
            if not slopes:
                continue
            chance = np.exp(-np.logaddexp(0.0, side * t))
            first, curve = -side * _WEIGHTS * chance, _WEIGHTS * chance * (1 - chance)
            moved = along / np.sqrt(variance) if variance > 0 else np.zeros_like(along)
            points = mean + _POINTS[:, None] * moved
            rest = covariance - np.outer(moved, moved)
            gradient = gradient + share * first @ points
            hessian = hessian + share * ((points.T * curve) @ points + curve.sum() * rest)
        return value, gradient, hessian

    w, steps = np.zeros(d + 1), 0
    value, gradient, hessian = at(w, True)
    while steps < rounds:
        steps += 1
        move = np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        length, gain = 1.0, float(gradient @ move)
        if gain <= tol * tol:
            break
        while length > 1e-6 and at(w - length * move, False)[0] > value - length * gain / 4:
            length /= 2
        w = w - length * move
        value, gradient, hessian = at(w, True)
    weights = w[:d] / size * known
    return np.append(weights, w[d] - weights @ centre), steps
