"""Estimators of scikit-learn as layers, by their attributes, and whether what was read answers as they do."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._errors import InputError, UnsupportedError
from ._kernels import votes

#: Classes that one score tells apart.
_BINARY = 2
#: How far answers may be from the estimator's own, of the largest: some libraries add in single precision.
_SINGLE = 1e-4


class Dense(NamedTuple):
    """A dense layer: `weights` of shape (inputs, outputs), `bias` of the outputs, and a function's name."""

    weights: ArrayLike
    bias: ArrayLike | None = None
    function: str = "identity"
    name: str | None = None


class Read(NamedTuple):
    """A model that was read: layers, what labels are, and the classes that they name."""

    layers: list[Dense]
    label: str
    classes: NDArray[Any] | None


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline that do something; an estimator is one."""
    if not hasattr(model, "steps"):
        return [model]
    return [step for _, step in model.steps if step is not None and step != "passthrough"]


def require_steps(model: Any) -> None:
    """Refuses steps that make numbers of text and categories, which no server can read."""
    found = [type(step).__name__ for step in steps_of(model)]
    found = [name for name in found if name == "ColumnTransformer" or name.endswith("Encoder")]
    if found:
        raise UnsupportedError(
            f"{' and '.join(found)}: categories are not encrypted; fit the other steps on "
            "pandas.get_dummies(frame), and compile those"
        )


def answers(model: Any, by: str, rows: NDArray[np.float64]) -> NDArray[Any]:
    """What an estimator's method gives for rows. Raises `InputError` for rows that it does not take."""
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # of names that rows do not have
        try:
            return np.asarray(getattr(model, by)(rows))
        except (AttributeError, ValueError) as error:
            raise InputError(f"{type(model).__name__} does not take these examples: {error}") from None


def require_same_answers(
    model: Any, rows: NDArray[np.float64], scores: NDArray[np.float64], label: str, classes: Any
) -> None:
    """Refuses an estimator that does more than was read of it: `scores` of `rows` are not its own answers.

    Scores of a classifier with a decision function are compared, of another its labels but for ties.
    """
    first = "predict" if label == "numbers" else "decision_function"
    by = next(by for by in (first, "predict", "transform") if hasattr(model, by))
    wanted = answers(model, by, rows)
    labels = answers(model, "predict", rows) if hasattr(model, "predict") else ()
    largest = max(float(np.abs(scores).max()), 1e-300)
    if label == "numbers" and classes is not None:
        # Votes of pairs, but for those that rounding may turn.
        sure = np.abs(scores).min(axis=1) > _SINGLE * largest
        same = bool((np.asarray(classes)[votes(scores, len(classes))] == labels)[sure].all())
    elif label == "numbers" or by == "decision_function":
        wanted = wanted.reshape(len(rows), -1)
        same = wanted.shape == scores.shape and np.abs(wanted - scores).max() <= _SINGLE * largest
        # Several labels of a row have the scores of one among several classes.
        same = same and (label == "numbers" or np.ndim(labels) == 1)
    else:
        each = np.hstack([-scores, scores]) if label == "sign" else scores
        matches = wanted.reshape(-1, 1) == np.asarray(classes)
        chosen = each[np.arange(len(rows)), matches.argmax(axis=1)]
        same = matches.any(axis=1).all() and (each.max(axis=1) - chosen).max() <= _SINGLE * largest
    if not same:
        raise UnsupportedError(
            f"{type(model).__name__}.{by} answers the examples otherwise than its coefficients or trees do; "
            "it does more with them than is compiled. Compile the linear part by sudare.Dense layers, and do "
            "the rest after decryption"
        )


def of_estimator(model: Any) -> Read:
    """A fitted estimator of scikit-learn, or a pipeline of such, by its attributes."""
    steps = steps_of(model)
    layers: list[Dense] = []
    read = Read([], "", None)
    for number, step in enumerate(steps):
        read = _of_step(step, last=number == len(steps) - 1)
        layers += read.layers
    return Read(layers, read.label, read.classes)


def preparations(steps: list[Any]) -> list[Dense]:
    """Linear steps before the last one of a pipeline."""
    return [layer for step in steps for layer in _of_step(step, last=False).layers]


def _of_step(step: Any, *, last: bool) -> Read:
    name = type(step).__name__
    scaled = _of_transformer(step, name)
    if scaled is not None:
        return Read([scaled], "numbers", None)
    classes = getattr(step, "classes_", None)
    if name == "MinMaxScaler":
        raise UnsupportedError(
            "MinMaxScaler(clip=True) is not compiled; fit it with clip=False: the client refuses inputs that "
            "are far outside of the examples"
        )
    if not last:
        raise UnsupportedError(
            f"{name} is not compiled inside of a pipeline; transform with it before encryption"
        )
    if hasattr(step, "coefs_") and hasattr(step, "intercepts_"):
        return _of_perceptron(step, name, classes)
    if hasattr(step, "coef_") and hasattr(step, "intercept_") and not hasattr(step, "support_vectors_"):
        weights = np.atleast_2d(np.asarray(step.coef_, dtype=np.float64)).T
        function = "exp" if _has_log_link(step, name) else "identity"
        dense = Dense(weights, np.atleast_1d(step.intercept_), function, name)
        if classes is None:
            return Read([dense], "numbers", None)
        return Read([dense], "sign" if weights.shape[1] == 1 else "argmax", np.asarray(classes))
    if not any(key.endswith("_") and not key.startswith("_") for key in vars(step)):
        raise InputError(f"{name} is not fitted; fit it first")
    raise UnsupportedError(
        f"{name} is not compiled; linear models, SVC, NuSVC, SVR, NuSVR, MLPClassifier, MLPRegressor, "
        "StandardScaler, MinMaxScaler and PCA are, trees, forests and gradient boosting, and ONNX files of "
        "networks"
    )


def _has_log_link(step: Any, name: str) -> bool:
    """Whether a generalised linear model answers by the exponential of its linear predictor."""
    if name == "TweedieRegressor":
        return bool(step.link == "log" or (step.link == "auto" and step.power > 0))
    return name in ("PoissonRegressor", "GammaRegressor")


def _of_transformer(step: Any, name: str) -> Dense | None:
    """A linear preparation of inputs; none for another step."""
    if name == "StandardScaler":
        features = step.n_features_in_
        scale = np.ones(features) if step.scale_ is None else np.asarray(step.scale_)
        mean = np.zeros(features) if step.mean_ is None or not step.with_mean else np.asarray(step.mean_)
        return Dense(1 / scale, -mean / scale, name=name)
    if name == "MinMaxScaler" and not step.clip:
        return Dense(np.asarray(step.scale_), np.asarray(step.min_), name=name)
    if name == "PCA":
        weights = np.asarray(step.components_).T
        if step.whiten:
            weights = weights / np.sqrt(step.explained_variance_)
        return Dense(weights, -np.asarray(step.mean_) @ weights, name=name)
    return None


def _of_perceptron(step: Any, name: str, classes: Any) -> Read:
    last = len(step.coefs_) - 1
    at_client = classes is not None and step.out_activation_ in ("softmax", "logistic")
    if not at_client and step.out_activation_ != "identity":
        raise UnsupportedError(
            f"{name}: the output function {step.out_activation_!r} is not compiled; apply it after decryption"
        )
    layers = [
        Dense(weights, bias, step.activation if k < last else "identity", f"{name} layer {k}")
        for k, (weights, bias) in enumerate(zip(step.coefs_, step.intercepts_, strict=True))
    ]
    if classes is None:
        return Read(layers, "numbers", None)
    if np.ndim(classes) != 1 or getattr(step, "_label_binarizer", None) is None:
        raise UnsupportedError(f"{name} is not compiled with several labels at once; fit one for each label")
    return Read(layers, "sign" if len(classes) == _BINARY else "argmax", np.asarray(classes))
