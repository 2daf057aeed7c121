"""What a fit takes: plain rows, decrypted moments, or encrypted rows, whose moments a server finds."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from .._errors import InputError, UnsupportedError
from .._frames import names
from .._matrix import Encrypted
from .._moments import Moments
from .._release import Release
from ._base import Estimator, labels, numbers, table
from ._layout import TARGET, Plan, planned, target_names
from ._rows import Answer, Rows
from ._sums import of_classes, of_rows

Self = TypeVar("Self", bound="FromMoments")


class FromMoments(Estimator):
    """An estimator that is finished from moments."""

    #: Whether the covariance that classes have in common is enough.
    _common = True

    def plan(
        self,
        shape: Any,
        *,
        max_abs: Any = 1.0,
        target_max_abs: Any = None,
        classes: Sequence[Any] | None = None,
        security: int = 128,
        release: Release | None = None,
    ) -> Plan:
        """The plan of a fit on an encrypted table of `shape` rows and features, or of a table's own shape.

        Everything here is public, and is chosen from what values can be, not from the data. `max_abs` bounds
        the features, one number or one for each. A regression has `target_max_abs`, one number, or one for
        each of several targets; a classification has its `classes`, whole numbers or text. `release` declares
        how many fits will be shown to others. The names of a frame's columns stay on this machine: its
        client refuses frames with others.

        Raises `InputError` for bounds or classes that are missing or none, `ShapeError` for another number of
        them, `PlanError` if no parameters hold such a table.
        """
        kind = self._kind
        if (target_max_abs is None) == (kind == "regressor"):
            wanted = (
                "needs target_max_abs=, the largest |y| there can be"
                if target_max_abs is None
                else ("has no target_max_abs, which belongs to regressions; leave it out")
            )
            raise InputError(f"a {kind} {wanted}")
        if (classes is None) == (kind == "classifier"):
            wanted = (
                "needs classes=, the labels that y can have"
                if classes is None
                else ("has no classes, which belong to classifiers; leave them out")
            )
            raise InputError(f"a {kind} {wanted}")
        return planned(shape, max_abs, target_max_abs, classes, self._common, security, release)

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Fit on encrypted rows, on moments, or on plain rows.

        - `learn.Rows`, which have their targets with them: the server that they are bound to computes their
          moments. It learns the plan and nothing else. The estimator then has `answer_`, which travels, and
          its owner reads it by `client.decrypt(estimator)`.
        - `sudare.Moments` of features and target, or of the rows of each class in a dictionary by label: the
          fit is finished here, and bounds on errors follow from those of the moments. Moments of several
          hospitals add up before a fit.
        - Plain rows and targets are fitted in the clear, by the same arithmetic.

        Raises `ShapeError`, `InputError` and `UnsupportedError` for what is none of these, `PlanError` for
        the rows of a plan of another kind of estimator.
        """
        if isinstance(X, Encrypted):
            raise UnsupportedError(
                f"{type(self).__name__} takes rows and targets that were encrypted together, by "
                f"sudare.Client(plan).encrypt(X, y) with plan = {type(self).__name__}().plan(…)"
            )
        if isinstance(X, Rows):
            _alone(y)
            X.plan.require(self)
            self._forget()
            self.answer_: Answer = X.moments()
            return self
        # Some sparse tables are dictionaries too.
        if isinstance(X, Moments) or type(X) is dict:
            _alone(y)
            found: Any = X
        else:
            found = self._in_the_clear(X, y)
        found = self._suited(found)
        self._forget()
        first: Moments = next(iter(found.values())) if isinstance(found, dict) else found
        targets = _targets(first) if self._kind == "regressor" else 0
        if targets > 1 and not self._several:
            raise InputError(
                f"{type(self).__name__} takes one target, and these moments have {targets}; "
                "leave others out: moments[columns]"
            )
        features = len(first.mean) - targets
        named = list(first.columns[:features])
        self._finish(found, features)
        self._seen(features, None if named == [str(j) for j in range(features)] else named)
        return self

    def _in_the_clear(self, X: Any, y: Any) -> Any:
        rows, known = table(X), names(X)
        if self._kind == "transformer":
            return of_rows(rows, known)
        if self._kind == "classifier":
            found = labels(y, len(rows))
            if len(np.unique(found)) < 2:
                raise InputError("a classifier takes more than one class; all rows are of 1 class")
            return of_classes(rows, found, known)
        targets = numbers(y, len(rows), several=self._several)
        known = list(map(str, range(rows.shape[1]))) if known is None else known
        vector = not self._several or np.asarray(y).ndim == 1
        return of_rows(np.hstack([rows, targets]), [*known, *target_names(targets.shape[1], vector)])

    def _suited(self, found: Any) -> Any:
        """Moments as this kind of estimator takes them."""
        if self._kind == "transformer":
            total: Moments = (
                functools.reduce(operator.add, found.values()) if isinstance(found, dict) else found
            )
            features = [name for name in total.columns if not _is_target(name)]
            return total if len(features) == len(total.columns) else total[features]
        if isinstance(found, dict) != (self._kind == "classifier"):
            wants = (
                "those of each class, in a dictionary by label"
                if self._kind == "classifier"
                else "one Moments"
            )
            raise InputError(f"a {self._kind} is fitted from moments: {wants}")
        if self._kind == "classifier" and len(found) < 2:
            raise InputError("a classifier takes the moments of more than one class")
        if self._kind == "classifier" and not self._common:
            first, *others = found.values()
            if all(g.covariance is first.covariance for g in others):
                raise InputError(
                    f"{type(self).__name__} needs the covariance of each class, and these moments have one "
                    f"for all; encrypt by {type(self).__name__}().plan"
                )
        if self._kind == "classifier":
            return dict(sorted(found.items()))
        # Targets are the last columns.
        ordered = sorted(found.columns, key=_is_target)
        return found if ordered == list(found.columns) else found[ordered]

    def _finish(self, found: Any, features: int) -> None:
        raise NotImplementedError


def _is_target(name: str) -> bool:
    return name == TARGET or name.startswith("(target ")


def _targets(found: Moments) -> int:
    """Columns of targets: those with their names, or else the last."""
    return sum(map(_is_target, found.columns)) or 1


def is_vector(found: Moments) -> bool:
    """Whether the target is one number a row, and not a column of a table."""
    return TARGET in found.columns or not any(map(_is_target, found.columns))


def _alone(y: Any) -> None:
    if y is not None:
        raise InputError("targets are with the rows already; leave y out")
