"""What classifiers have in common, however they are fitted."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._array import Floats
from ._base import Estimator, labels


class Classifier(Estimator):
    """What classifiers have in common: the class with the largest score is predicted."""

    _kind: ClassVar[str] = "classifier"
    classes_: NDArray[Any]

    def _scores(self, rows: Floats) -> Floats:
        """A score for each class."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """The classes of plain rows.

        Raises `NotFittedError` before a fit and while parameters are encrypted, `ShapeError` and `InputError`
        for other rows.
        """
        best = self._scores(self._inputs(X, "classes_")).argmax(axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def score(self, X: Any, y: Any) -> float:
        """The share of plain rows whose class is predicted.

        Raises as `predict`.
        """
        found = self.predict(X)
        return float(np.mean(found == labels(y, len(found))))


class Probable(Classifier):
    """What classifiers have in common whose scores are logarithms of joint probabilities."""

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of each class's probability.

        Raises as `predict`.
        """
        scores = self._scores(self._inputs(X, "classes_"))
        scores = scores - scores.max(axis=1, keepdims=True)
        found: Floats = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return found

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class.

        Raises as `predict`.
        """
        found: Floats = np.exp(self.predict_log_proba(X))
        return found


class Decides(Probable):
    """What classifiers have in common whose decisions scikit-learn shows."""

    def decision_function(self, X: Any) -> Floats:
        """The score of each class; of two classes that of the second over the first.

        Raises as `predict`.
        """
        scores = self._scores(self._inputs(X, "classes_"))
        found: Floats = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
        return found
