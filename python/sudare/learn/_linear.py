"""Linear regressions from moments: least squares, ridge, lasso, elastic net."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from .._array import Floats
from .._errors import InputError
from .._moments import Moments
from .._values import count
from ._base import not_negative, numbers
from ._fits import FromMoments, is_vector
from ._sums import Square, products, solve


class _Linear(FromMoments):
    """What linear regressions have in common: y = x · coef_ + intercept_."""

    _kind: ClassVar[str] = "regressor"
    fit_intercept: bool
    coef_: Floats
    coef_error_: Floats
    """A bound on what errors of the moments do to each coefficient; infinite where nothing determines it."""

    def predict(self, X: Any) -> Floats:
        """The targets of plain rows.

        Raises `NotFittedError` before a fit and while parameters are encrypted, `ShapeError` and `InputError`
        for other rows.
        """
        rows = self._inputs(X, "coef_")
        found: Floats = rows @ self.coef_.T + self.intercept_
        return found

    def score(self, X: Any, y: Any) -> float:
        """The coefficient of determination R² on plain rows; of several targets its mean.

        Raises as `predict`.
        """
        found = self.predict(X)
        wanted = numbers(y, len(found), several=True)
        off = ((wanted - found.reshape(wanted.shape)) ** 2).sum(axis=0)
        spread = ((wanted - wanted.mean(axis=0)) ** 2).sum(axis=0)
        constant = np.where(off == 0, 1.0, 0.0)
        return float(np.mean(np.where(spread > 0, 1 - off / np.where(spread > 0, spread, 1.0), constant)))

    def _set(self, found: Moments, coef: Floats, error: Floats) -> None:
        """Coefficients, a column for each target, and the intercepts that belong to them."""
        d = len(coef)
        if self.fit_intercept:
            offset = found.mean[d:] - found.mean[:d] @ coef
            slack = (
                found.mean_error[d:]
                + found.mean_error[:d] @ np.abs(coef)
                + (np.abs(found.mean[:d]) + found.mean_error[:d]) @ error
            )
        else:
            offset = slack = np.zeros(coef.shape[1])
        vector = is_vector(found)
        self.coef_, self.coef_error_ = (coef[:, 0], error[:, 0]) if vector else (coef.T, error.T)
        self.intercept_: Any = float(offset[0]) if vector else offset
        self.intercept_error_: Any = float(slack[0]) if vector else slack


class LinearRegression(_Linear):
    """Least squares, as `sklearn.linear_model.LinearRegression`, from encrypted means and covariances.

    The server learns the plan: numbers of rows and columns, and bounds. The owner sees the moments of all
    columns. `coef_error_` and `intercept_error_` bound how far the result is from that of the exact moments.

    >>> import numpy as np, sudare as sd
    >>> from sudare import learn
    >>> X, y = np.array([[0, 1], [1, 0], [2, 2], [3, 1]]), np.array([2.0, 3, 7, 8])
    >>> client = sd.Client(learn.LinearRegression().plan(X.shape, max_abs=3, target_max_abs=10))
    >>> server = client.server()
    >>> model = client.decrypt(learn.LinearRegression().fit(client.encrypt(X, y)))
    >>> bool(np.allclose(model.coef_, [2, 1], atol=1e-4))
    True
    """

    _several = True

    def __init__(self, *, fit_intercept: bool = True) -> None:
        self.fit_intercept = fit_intercept

    def _finish(self, found: Moments, features: int) -> None:
        value, error = products(found, self.fit_intercept)
        d = features
        solution = solve(Square(value[:d, :d], error[:d, :d]), value[:d, d:], error[:d, d:])
        self.rank_ = solution.rank
        self._set(found, solution.x, solution.error)


class Ridge(_Linear):
    """Least squares with a penalty α ‖w‖², as `sklearn.linear_model.Ridge`, from encrypted moments.

    Who learns what is as for `LinearRegression`. One answer of a server serves every α: fit its decrypted
    moments as often as you like.
    """

    _several = True

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = True) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def _finish(self, found: Moments, features: int) -> None:
        alpha = not_negative(self.alpha, "alpha")
        value, error = products(found, self.fit_intercept)
        d = features
        square = Square(value[:d, :d] + np.eye(d) * alpha / found.rows, error[:d, :d])
        solution = solve(square, value[:d, d:], error[:d, d:])
        self._set(found, solution.x, solution.error)


class ElasticNet(_Linear):
    """Least squares with ‖w‖₁ and ‖w‖² as penalties, as `sklearn.linear_model.ElasticNet`.

    From encrypted moments. It minimises ‖y − Xw‖² / 2n + α ρ ‖w‖₁ + α (1 − ρ) ‖w‖² / 2, ρ = `l1_ratio`, by
    coordinate descent on the covariances. Who learns what is as for `LinearRegression`.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _finish(self, found: Moments, features: int) -> None:
        alpha, ratio = not_negative(self.alpha, "alpha"), not_negative(self.l1_ratio, "l1_ratio")
        rounds, tol = count(self.max_iter, "max_iter"), not_negative(self.tol, "tol")
        if ratio > 1:
            raise InputError(f"l1_ratio is from 0 to 1, not {ratio:g}")
        value, error = products(found, self.fit_intercept)
        d = features
        a, q, y = value[:d, :d] + np.eye(d) * alpha * (1 - ratio), value[:d, d], float(value[d, d])
        w, gap, steps = descend(a, q, max(y, 0.0), alpha * ratio, rounds, tol)
        if gap > tol * max(y, 1e-300):
            warnings.warn(
                f"coordinate descent ended after {steps} rounds with a duality gap of {gap:.1e}; "
                "raise max_iter, or alpha",
                stacklevel=3,
            )
        self.n_iter_, self.dual_gap_ = steps, gap
        self._set(found, w[:, None], _apart(Square(a, error[:d, :d]), w, error[:d, d], gap)[:, None])


class Lasso(ElasticNet):
    """Least squares with a penalty α ‖w‖₁, as `sklearn.linear_model.Lasso`, from encrypted moments.

    Who learns what is as for `LinearRegression`.
    """

    def __init__(
        self, alpha: float = 1.0, *, fit_intercept: bool = True, max_iter: int = 1000, tol: float = 1e-4
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    #: All of the penalty is on ‖w‖₁.
    l1_ratio = 1.0


def descend(
    a: Floats, q: Floats, y: float, penalty: float, rounds: int, tol: float
) -> tuple[Floats, float, int]:
    """Minimises ½ wᵀAw − qᵀw + penalty ‖w‖₁ by coordinate descent; w, its duality gap and rounds.

    `y` is the mean square of the targets. The gap is that of Friedman, Hastie and Tibshirani's problem as
    scikit-learn has it; the part of A that is a penalty is rows of data whose targets are zero.
    """
    w, gap, done = np.zeros(len(q)), np.inf, 0
    for done in range(1, rounds + 1):
        moved = 0.0
        for j in np.flatnonzero(a.diagonal() > 0):
            rest = q[j] - a[j] @ w + a[j, j] * w[j]
            new = np.sign(rest) * max(abs(rest) - penalty, 0.0) / a[j, j]
            moved, w[j] = max(moved, abs(new - w[j])), new
        if moved <= tol * max(np.abs(w).max(initial=0.0), 1e-300) or done == rounds:
            gap = _gap(a, q, y, penalty, w)
            if gap <= tol * y:
                break
    return w, gap, done


def _gap(a: Floats, q: Floats, y: float, penalty: float, w: Floats) -> float:
    """The duality gap at w: a bound on how far the objective is above its least value."""
    slope = q - a @ w
    # ‖y − Xw‖² and yᵀ(y − Xw), over n.
    residual, along = y - 2 * q @ w + w @ a @ w, y - q @ w
    largest = np.abs(slope).max(initial=0.0)
    shrink = 1.0 if largest <= penalty else penalty / largest
    primal = residual / 2 + penalty * np.abs(w).sum()
    dual = shrink * along - shrink**2 * residual / 2
    return float(max(primal - dual, 0.0))


def _apart(a: Square, w: Floats, error: Floats, gap: float) -> Floats:
    """A bound on how far w is from the minimum for the exact moments, from strong convexity.

    (w' − w)ᵀ A' (w' − w) ≤ ‖w' − w‖ · (‖δ‖ + ‖E‖‖w‖) for the minima w and w' of A and A' = A + E, and a gap
    is at least half the square of the distance to the minimum, in columns of one size.
    """
    size = np.sqrt(np.maximum(a.value.diagonal(), 1e-300))
    scale = np.outer(size, size)
    least = float(np.linalg.eigvalsh(a.value / scale)[0])
    inside = least - float(np.linalg.norm(a.error / scale, 2))
    if not inside > 0:
        return np.full(len(w), np.inf)
    numeric = np.sqrt(2 * gap / least)
    # ‖w‖ of the minimum itself is within `numeric` of this one's.
    reach = np.abs(w) + numeric / size
    return np.asarray((np.linalg.norm((error + a.error @ reach) / size) / inside + numeric) / size)
