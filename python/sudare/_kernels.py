"""Support vector machines of scikit-learn as networks: a function of each support vector, and a linear map.

The kernel of an input x and a vector s is a function of one number that is linear in x and its squares:

- `rbf`: exp(−γ·|x − s|²), where |x − s|² = Σ x² − 2·s·x + |s|²;
- `poly`: (γ·s·x + c)^d, `sigmoid`: tanh(γ·s·x + c), `linear`: s·x.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._errors import UnsupportedError
from ._onnx import Graph

#: Estimators whose scores are kernels with support vectors.
_KNOWN = ("NuSVC", "NuSVR", "SVC", "SVR")
#: Classes that one score tells apart.
_BINARY = 2
#: Powers that are computed.
_POWERS = range(1, 9)


class Machine(NamedTuple):
    """A machine as a network's file, and the classes that its labels name."""

    file: bytes
    label: str
    classes: NDArray[Any] | None


def is_machine(model: Any) -> bool:
    """Whether a fitted estimator, or the last step of a pipeline, is a support vector machine."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return type(last).__name__ in _KNOWN and hasattr(last, "support_vectors_")


def votes(scores: NDArray[np.float64], classes: int) -> NDArray[np.int64]:
    """The class of each row that wins most pairs, the first of equals: pair i < j is for i above zero."""
    won = np.zeros((len(scores), classes), dtype=np.int64)
    for column, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        won[:, i] += scores[:, column] > 0
        won[:, j] += scores[:, column] <= 0
    first: NDArray[np.int64] = won.argmax(axis=1)
    return first


def pairs(classes: int) -> int:
    """How many pairs of classes there are, where there are more than two."""
    return classes * (classes - 1) // 2 if classes > _BINARY else 0


def read(before: Iterable[Any], machine: Any, rows: NDArray[np.float64]) -> Machine:
    """A machine after linear layers, for inputs like `rows`: the interval of its exponentials is theirs."""
    name, classes, kernel = type(machine).__name__, getattr(machine, "classes_", None), machine.kernel
    if kernel not in ("linear", "poly", "rbf", "sigmoid"):
        raise UnsupportedError(
            f"{name} with the kernel {kernel!r}; rbf, poly, sigmoid and linear are compiled"
        )
    vectors = machine.support_vectors_
    vectors = np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=np.float64)
    coefficients, shift = _scores(machine, classes, len(vectors))
    graph, value, at = Graph((1, rows.shape[1])), "x", rows
    for layer in before:
        weights, bias = np.asarray(layer.weights, dtype=np.float64), layer.bias
        value = graph.affine(value, weights, bias, layer.name or "")
        at = (at * weights if weights.ndim == 1 else at @ weights) + (0 if bias is None else np.asarray(bias))
    gamma = float(machine._gamma)
    if kernel == "linear":
        output = graph.affine(value, vectors.T @ coefficients, shift, name)
    elif kernel == "rbf":
        lengths = (vectors**2).sum(axis=1)
        exponents = -gamma * ((at**2).sum(axis=1)[:, None] - 2 * at @ vectors.T + lengths)
        # On an interval around zero a polynomial for the exponential is nearest.
        middle = (exponents.min() + min(exponents.max(), 0.0)) / 2
        squares = graph.affine(
            graph.node("Mul", value, value, name=f"{name} squares"),
            np.full((vectors.shape[1], len(vectors)), -gamma),
            None,
            name,
        )
        products = graph.affine(value, 2 * gamma * vectors.T, -gamma * lengths - middle, name)
        near = graph.node("Exp", graph.node("Add", squares, products), name=f"{name} kernels")
        output = graph.affine(near, coefficients * np.exp(middle), shift, name)
    else:
        inner = graph.affine(value, gamma * vectors.T, np.full(len(vectors), float(machine.coef0)), name)
        output = graph.affine(_function(graph, inner, machine), coefficients, shift, name)
    label = "numbers" if classes is None or len(classes) > _BINARY else "sign"
    return Machine(graph.file(output), label, None if classes is None else np.asarray(classes))


def _function(graph: Graph, inner: str, machine: Any) -> str:
    """The function of a kernel of products."""
    title = f"{type(machine).__name__} kernels"
    if machine.kernel == "sigmoid":
        return graph.node("Tanh", inner, name=title)
    if machine.degree not in _POWERS:
        raise UnsupportedError(
            f"{type(machine).__name__} with a polynomial of degree {machine.degree}; from 1 to 8 are compiled"
        )
    degree = graph.constant(float(machine.degree))
    return inner if machine.degree == 1 else graph.node("Pow", inner, degree, name=title)


def _scores(machine: Any, classes: Any, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What kernels are multiplied by, a column for each score, and what is added."""
    dual = np.asarray(
        machine.dual_coef_.toarray() if hasattr(machine.dual_coef_, "toarray") else machine.dual_coef_,
        dtype=np.float64,
    )
    shift = np.asarray(machine.intercept_, dtype=np.float64)
    if classes is None or len(classes) == _BINARY:
        return dual.T, shift
    if machine.break_ties:
        raise UnsupportedError(f"{type(machine).__name__} with break_ties=True; fit it without")
    # Vectors stand by their classes. Those of class i have their factor against class j in row j − 1, or in
    # row j for a class before.
    ends = np.cumsum(machine.n_support_)
    own = [slice(end - size, end) for end, size in zip(ends, machine.n_support_, strict=True)]
    out = np.zeros((count, len(shift)))
    for column, (i, j) in enumerate(itertools.combinations(range(len(classes)), 2)):
        out[own[i], column] = dual[j - 1, own[i]]
        out[own[j], column] = dual[i, own[j]]
    return out, shift
