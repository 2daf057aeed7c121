"""What all estimators have: parameters, checks of plain data, and what scikit-learn asks of them.

Nothing of scikit-learn is loaded here. It knows its estimators by what they have, and asks for tags; where it
asks, it is there.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import warnings
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._array import Floats
from .._errors import InputError, ShapeError, SudareError, UnsupportedError
from .._frames import is_frame, names, require_names
from .._values import array, real

Self = TypeVar("Self", bound="Estimator")


class NotFittedError(SudareError, ValueError, AttributeError):
    """An estimator that has not been fitted, or whose parameters are encrypted still."""


class Estimator:
    """Parameters by name, as scikit-learn has them: `get_params`, `set_params`, `sklearn.base.clone`."""

    #: What scikit-learn calls it: "regressor", "classifier", "transformer" or "clusterer".
    _kind: ClassVar[str]
    #: Whether it takes several targets.
    _several: ClassVar[bool] = False

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` makes no difference, for none is an estimator."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self: Self, **params: Any) -> Self:
        """Change parameters by name, and give the estimator.

        Raises `InputError` for a name that is no parameter.
        """
        for name, value in params.items():
            if name not in self._names():
                raise InputError(f"{type(self).__name__} has the parameters {self._names()}, not {name!r}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        standard = inspect.signature(type(self)).parameters
        said = [f"{k}={v!r}" for k, v in self.get_params().items() if not _same(v, standard[k].default)]
        return f"{type(self).__name__}({', '.join(said)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks estimators for."""
        theirs, kind = importlib.import_module("sklearn.utils"), self._kind
        return theirs.Tags(
            estimator_type=None if kind == "transformer" else kind,
            target_tags=theirs.TargetTags(
                required=kind in ("regressor", "classifier"), multi_output=self._several
            ),
            transformer_tags=theirs.TransformerTags(preserves_dtype=[])
            if hasattr(self, "transform")
            else None,
            classifier_tags=theirs.ClassifierTags() if kind == "classifier" else None,
            regressor_tags=theirs.RegressorTags() if kind == "regressor" else None,
        )

    def _blank(self: Self) -> Self:
        """The same estimator before any fit."""
        return type(self)(**self.get_params())

    def _require(self, attribute: str) -> None:
        """Refuses what a fit has to come before."""
        if hasattr(self, attribute):
            return
        name = type(self).__name__
        text = f"this {name} is not fitted; call fit first"
        if hasattr(self, "answer_") or hasattr(self, "encrypted_"):
            text = f"the parameters of this {name} are encrypted; their owner reads them by decrypt({name})"
        theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
        raise (NotFittedError if theirs is None else _both(theirs))(text)

    def _forget(self) -> None:
        """Removes what an earlier fit left, so that nothing predicts by it."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _seen(self, features: int, names: Any = None) -> None:
        """Notes what a fit has seen."""
        self.n_features_in_ = features
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _inputs(self, X: Any, attribute: str) -> Floats:
        """Plain rows for a fitted estimator."""
        self._require(attribute)
        values = table(X)
        if values.shape[1] != self.n_features_in_:
            raise ShapeError(
                f"X has {values.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        known, given = getattr(self, "feature_names_in_", None), names(X)
        if known is not None and given is None:
            warnings.warn(
                "X does not have valid feature names, but "
                f"{type(self).__name__} was fitted with feature names",
                stacklevel=3,
            )
        elif known is None and given is not None:
            warnings.warn(
                f"X has feature names, but {type(self).__name__} was fitted without feature names",
                stacklevel=3,
            )
        require_names(known, X)
        return values


@functools.cache
def _both(theirs: type) -> type[NotFittedError]:
    """An error that is caught by its name here, and by the one that scikit-learn has."""
    # Another process makes the plain one of it.
    plain = {"__reduce__": lambda error: (NotFittedError, error.args)}
    return type("NotFittedError", (NotFittedError, theirs), plain)


def _same(value: Any, standard: Any) -> bool:
    return value is standard or (type(value) is type(standard) and bool(np.all(value == standard)))


def table(X: Any) -> Floats:
    """Plain rows of real numbers, all of them there."""
    if hasattr(X, "toarray"):
        raise UnsupportedError("sparse tables are not taken; X.toarray() is a dense one")
    values = array(X)
    if values.dtype.kind == "c":
        raise InputError("Complex data not supported; give real numbers")
    if values.ndim != 2:
        raise ShapeError(
            f"Expected 2D array, got {values.ndim}D array of shape {values.shape} instead. "
            "Reshape your data: X.reshape(-1, 1) has one feature, X.reshape(1, -1) is one row"
        )
    for axis, what in enumerate(("sample", "feature")):
        if values.shape[axis] == 0:
            raise ShapeError(
                f"Found array with 0 {what}(s) (shape={values.shape}) while a minimum of 1 is required."
            )
    return finite(values, "X")


def not_negative(value: Any, name: str) -> float:
    """A finite number that is not below zero."""
    found = real(value, name)
    if not 0 <= found < np.inf:
        raise InputError(f"{name} is a finite number of at least 0, not {value!r}")
    return found


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def finite(values: NDArray[Any], name: str) -> Floats:
    """Real numbers, all of them there."""
    try:
        found = values.astype(np.float64)
    except TypeError as error:
        raise UnsupportedError(f"{name}: an element is not a number: {error}") from None
    except ValueError:
        # Values are nobody's business but the caller's, and messages travel: the position alone.
        at = next((at for at, value in np.ndenumerate(values) if not _is_number(value)), ())
        raise InputError(
            f"{name}: the element at {at} is not a number; convert it, or leave its row out"
        ) from None
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        raise InputError(f"{name} contains NaN or infinity, first at {tuple(bad[0].tolist())}; fill it first")
    return found


def numbers(y: Any, rows: int, *, several: bool) -> Floats:
    """Plain targets, a column for each."""
    if y is None:
        raise InputError("the fit requires y to be passed, but the target y is None")
    values = array(y)
    if values.dtype.kind == "c":
        raise InputError("Complex data not supported; give real numbers")
    values = finite(values, "Input y")
    if values.ndim == 2 and values.shape[1] == 1 and not several:
        warn_of_column()
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or not (several or values.shape[1] == 1):
        raise ShapeError(f"y should be a 1d array, got an array of shape {np.shape(y)} instead.")
    return _as_many(values, rows)


def labels(y: Any, rows: int) -> NDArray[Any]:
    """Plain labels of classes."""
    if y is None:
        raise InputError("the fit requires y to be passed, but the target y is None")
    # Frames of labels may hold text.
    values = np.asarray(y) if is_frame(y) else array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warn_of_column()
        values = values[:, 0]
    if values.ndim != 1:
        raise ShapeError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    if values.dtype.kind == "c":
        raise InputError("Complex data not supported; give labels")
    if values.dtype.kind == "f":
        finite(values, "Input y")
        if (values != np.floor(values)).any():
            raise InputError("Unknown label type: continuous numbers; labels are whole numbers or text")
    if values.dtype.kind == "O":
        finite_object = [x for x in values.tolist() if isinstance(x, float)]
        finite(np.array(finite_object, dtype=float), "Input y")
    return _as_many(values, rows)


def warn_of_column() -> None:
    """Tells that one column stands where a vector is meant."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "DataConversionWarning", UserWarning)
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected; give y.ravel()", theirs, stacklevel=4
    )


def _as_many(values: NDArray[Any], rows: int) -> NDArray[Any]:
    if len(values) != rows:
        raise ShapeError(f"X and y have inconsistent numbers of rows: {rows} and {len(values)}")
    return values
