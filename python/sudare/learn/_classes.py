"""Classifiers from the moments of each class: nearest centroid, naive Bayes, discriminant analyses."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._array import Floats
from .._errors import InputError
from .._values import count, real
from ._base import not_negative
from ._decide import Classifier, Decides, Probable
from ._fits import FromMoments
from ._sums import Groups, Square, one_size, pooled, solve


class FromClasses(FromMoments):
    """What classifiers have in common that are finished from the moments of each class."""

    classes_: NDArray[Any]

    def _means(self, groups: Groups) -> tuple[Floats, Floats]:
        """The classes' means and bounds on their errors; notes classes."""
        self.classes_ = np.array(list(groups))
        found = list(groups.values())
        return np.array([g.mean for g in found]), np.array([g.mean_error for g in found])

    def _shares(self, groups: Groups, priors: Any) -> Floats:
        """Prior probabilities: those given, or the classes' shares of the rows."""
        rows = np.array([g.rows for g in groups.values()], dtype=np.float64)
        if priors is None:
            shares: Floats = rows / rows.sum()
            return shares
        given = np.asarray(priors, dtype=np.float64)
        if given.shape != rows.shape or (given < 0).any() or not np.isclose(given.sum(), 1.0):
            raise InputError(f"priors are a probability for each of {len(rows)} classes, which sum to one")
        return given


class NearestCentroid(FromClasses, Classifier):
    """The class whose mean is nearest, as `sklearn.neighbors.NearestCentroid`, from encrypted moments.

    Labels are secret too: the server learns the plan, with the number of classes, and not which row is of
    which. The owner sees the means of the classes and the covariance that they have in common.
    """

    def __init__(self) -> None:
        pass

    def _finish(self, found: Groups, features: int) -> None:
        del features
        self.centroids_, self.centroids_error_ = self._means(found)

    def _scores(self, rows: Floats) -> Floats:
        distance: Floats = ((rows[:, None, :] - self.centroids_) ** 2).sum(axis=2)
        return -distance


class GaussianNB(FromClasses, Probable):
    """Naive Bayes with normal features, as `sklearn.naive_bayes.GaussianNB`.

    From the encrypted moments of each class. Labels are secret too: the server learns the plan, with the
    number of classes, and not which row is of which. The owner sees the moments of each class.
    """

    _common = False

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing

    def _finish(self, found: Groups, features: int) -> None:
        del features
        self.theta_, self.theta_error_ = self._means(found)
        groups = list(found.values())
        self.class_prior_ = self._shares(found, self.priors)
        self.class_count_ = np.array([g.rows for g in groups], dtype=np.float64)
        total = functools.reduce(operator.add, groups)
        largest = float(np.max(total.variance)) * (total.rows - 1) / total.rows
        smoothing = not_negative(self.var_smoothing, "var_smoothing")
        self.epsilon_ = smoothing * largest
        shares = [(g.rows - 1) / g.rows for g in groups]
        variances = [np.maximum(s * g.variance, 0.0) for s, g in zip(shares, groups, strict=True)]
        self.var_ = np.array(variances) + self.epsilon_
        slack = smoothing * float(total.variance_error.max())
        self.var_error_ = np.array(
            [s * g.variance_error + slack for s, g in zip(shares, groups, strict=True)]
        )

    def _scores(self, rows: Floats) -> Floats:
        away = (rows[:, None, :] - self.theta_) ** 2 / self.var_
        found: Floats = np.log(self.class_prior_) - (np.log(2 * np.pi * self.var_) + away).sum(axis=2) / 2
        return found

    theta_error_: Floats
    """A bound on the error of each mean in `theta_`."""
    var_error_: Floats
    """A bound on the error of each variance in `var_`."""


class LinearDiscriminantAnalysis(FromClasses, Decides):
    """Linear discriminant analysis, as `sklearn.discriminant_analysis.LinearDiscriminantAnalysis`.

    From the encrypted moments of the rows and of their classes. Labels are secret too: the server learns the
    plan, with the number of classes, and not which row is of which. The owner sees the means of the classes
    and the covariance that they have in common. `coef_error_` bounds what errors of the moments do to
    `coef_`.
    """

    def __init__(self, *, priors: Any = None, n_components: int | None = None) -> None:
        self.priors = priors
        self.n_components = n_components

    def _finish(self, found: Groups, features: int) -> None:
        self.means_, off = self._means(found)
        self.priors_ = self._shares(found, self.priors)
        self.xbar_ = self.priors_ @ self.means_
        # Of n degrees of freedom, as scikit-learn has it.
        rows = sum(g.rows for g in found.values())
        within, slack = pooled(found)
        share = max(rows - len(found), 1) / rows
        self.covariance_, error = share * within, share * slack
        self.means_error_, self.covariance_error_ = off, error
        k = len(self.means_)
        most = min(k - 1, features)
        wanted = most if self.n_components is None else count(self.n_components, "n_components")
        if not 1 <= wanted <= most:
            raise InputError(f"n_components is from 1 to {most} for {k} classes, not {wanted}")
        # Axes in which the covariance within classes is one, then those in which the means differ most.
        deviation, one, noise = one_size(Square(self.covariance_, error))
        values, axes = np.linalg.eigh(one)
        keep = values > max(noise, 1e-8)
        if not keep.any():
            raise InputError("the covariance within classes is zero, as far as it is known; add rows")
        white = (axes[:, keep] / np.sqrt(values[keep])) / deviation[:, None]
        away = self.means_ - self.xbar_
        between = np.sqrt(self.priors_ * rows / max(k - 1, 1))[:, None] * (away @ white)
        _, sizes, directions = np.linalg.svd(between, full_matrices=False)
        rank = max(int((sizes > 1e-4 * sizes[0]).sum()), 1)
        self.explained_variance_ratio_ = (sizes**2 / np.sum(sizes**2))[: min(wanted, rank)]
        self.scalings_ = white @ directions[:rank].T
        self._axes = min(wanted, rank)
        coef = away @ self.scalings_ @ self.scalings_.T
        intercept = np.log(self.priors_) - ((away @ self.scalings_) ** 2).sum(axis=1) / 2 - coef @ self.xbar_
        slack = off + self.priors_ @ off
        bound = solve(Square(self.covariance_, error), away.T, slack.T).error.T
        if k == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
            bound = bound[1:] + bound[:1]
        self.coef_, self.intercept_, self.coef_error_ = coef, intercept, bound

    def _scores(self, rows: Floats) -> Floats:
        found: Floats = rows @ self.coef_.T + self.intercept_
        return np.hstack([-found / 2, found / 2]) if len(self.classes_) == 2 else found

    def transform(self, X: Any) -> Floats:
        """Plain rows along the axes that tell classes apart best.

        Raises as `predict`.
        """
        found: Floats = (self._inputs(X, "classes_") - self.xbar_) @ self.scalings_[:, : self._axes]
        return found

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit on plain rows and labels, and transform the rows.

        Raises as `fit` and `transform`.
        """
        return self.fit(X, y).transform(X)

    coef_error_: Floats
    """A bound on the error of each coefficient; infinite where the covariance is not known to be regular."""


class QuadraticDiscriminantAnalysis(FromClasses, Decides):
    """Quadratic discriminant analysis, as `sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis`.

    From the encrypted moments of each class. Labels are secret too: the server learns the plan, with the
    number of classes, and not which row is of which. The owner sees the moments of each class.
    """

    _common = False

    def __init__(self, *, priors: Any = None, reg_param: float = 0.0) -> None:
        self.priors = priors
        self.reg_param = reg_param

    def _finish(self, found: Groups, features: int) -> None:
        self.means_, self.means_error_ = self._means(found)
        self.priors_ = self._shares(found, self.priors)
        share = real(self.reg_param, "reg_param")
        if not 0 <= share <= 1:
            raise InputError(f"reg_param is from 0 to 1, not {share:g}")
        self.covariance_, self.covariance_error_, self.scalings_, self.rotations_ = [], [], [], []
        for label, group in found.items():
            if group.rows < 2:
                raise InputError(f"class {label!r} has only 1 sample, of which there is no covariance")
            # Of as many degrees of freedom as rows, as scikit-learn has it.
            covariance, error = (
                (group.rows - 1) / group.rows * x for x in (group.covariance, group.covariance_error)
            )
            values, axes = np.linalg.eigh(covariance)
            values = (1 - share) * np.maximum(values[::-1], 0.0) + share
            if not _regular((1 - share) * covariance + share * np.eye(features), (1 - share) * error):
                raise InputError(
                    f"the covariance of class {label!r} is not regular, as far as it is known: leave columns "
                    "out that follow from others, or raise reg_param"
                )
            self.covariance_.append(covariance)
            self.covariance_error_.append(error)
            self.scalings_.append(values)
            self.rotations_.append(axes[:, ::-1])

    def _scores(self, rows: Floats) -> Floats:
        found = []
        for mean, axes, values in zip(self.means_, self.rotations_, self.scalings_, strict=True):
            away = ((rows - mean) @ axes) ** 2 / values
            found.append(-(away.sum(axis=1) + np.log(values).sum()) / 2)
        scores: Floats = np.array(found).T + np.log(self.priors_)
        return scores


def _regular(covariance: Floats, error: Floats) -> bool:
    """Whether a covariance is known to be regular, columns brought to one size."""
    size = np.sqrt(np.maximum(covariance.diagonal(), 1e-300))
    scale = np.outer(size, size)
    noise = float(np.linalg.norm(error / scale, 2))
    return bool(np.linalg.eigvalsh(covariance / scale)[0] > max(noise, len(size) * 2.0**-50))
