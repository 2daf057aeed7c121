"""Moments of rows and of classes, from plain rows or from what a server found, and what follows from them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._array import Floats
from .._moments import Moments

#: The moments of the rows of each class, by its label.
Groups: TypeAlias = "dict[Any, Moments]"


def of_rows(rows: Floats, columns: Any = None) -> Moments:
    """The moments of plain rows, without errors of encryption."""
    n, k = rows.shape
    mean = rows.mean(axis=0)
    centred = rows - mean
    covariance = centred.T @ centred / max(n - 1, 1)
    return Moments(n, mean, covariance, np.zeros(k), np.zeros((k, k)), () if columns is None else columns)


def of_classes(rows: Floats, labels: NDArray[Any], columns: Any = None) -> Groups:
    """The moments of the rows of each class."""
    return {label: of_rows(rows[labels == label], columns) for label in np.unique(labels).tolist()}


def of_sums(sums: Floats, errors: Floats, bounds: Floats, rows: int) -> Moments:
    """The moments of columns, from the sums of products of each two of them and of ones, the last column.

    Columns are over their bounds. With m the means, (n − 1) C = Σ x xᵀ − n m mᵀ.
    """
    n = max(rows, 1)
    mean, off = sums[:-1, -1] / n, errors[:-1, -1] / n
    square, error = (x[:-1, :-1] / n for x in (sums, errors))
    # What doubles round.
    error = error + 2.0**-50 * (np.abs(square) + np.outer(np.abs(mean), np.abs(mean)))
    slack = np.outer(np.abs(mean), off) + np.outer(off, np.abs(mean)) + np.outer(off, off)
    share, units = n / max(n - 1, 1), np.outer(bounds, bounds)
    covariance = (square + square.T) / 2 - np.outer(mean, mean)
    error = np.maximum(error, error.T) + slack
    return Moments(rows, mean * bounds, share * covariance * units, off * bounds, share * error * units)


def of_one_hot(found: Moments, labels: list[Any]) -> Groups:
    """The moments of classes with a covariance in common, from those of rows and one-hot labels.

    Σ (x − μ)(1_c − p_c) = (n − 1) C tells each class's mean, and the scatter within classes is that of all
    rows less that of the means. Each class gets the pooled covariance, so that pooling gives it again.
    """
    n, k, d = found.rows, len(labels), len(found.mean) - len(labels)
    counts = np.rint(n * found.mean[d:]).astype(int)
    cross, cross_error = found.covariance[:d, d:].T, found.covariance_error[:d, d:].T
    scatter, error = (n - 1) * found.covariance[:d, :d], (n - 1) * found.covariance_error[:d, :d]
    means, off = np.empty((k, d)), np.empty((k, d))
    for c, rows in enumerate(counts):
        share = (n - 1) / max(rows, 1)
        gap, slack = share * cross[c], share * cross_error[c]
        means[c], off[c] = found.mean[:d] + gap, found.mean_error[:d] + slack
        scatter = scatter - rows * np.outer(gap, gap)
        error = error + rows * (
            np.outer(np.abs(gap), slack) + np.outer(slack, np.abs(gap)) + np.outer(slack, slack)
        )
    freedom = max(n - k, 1)
    pooled, pooled_error = scatter / freedom, error / freedom
    return {
        label: Moments(int(rows), means[c], pooled, off[c], pooled_error)
        for c, (label, rows) in enumerate(zip(labels, counts, strict=True))
    }


def pooled(groups: Groups) -> tuple[Floats, Floats]:
    """The covariance within classes, of n − k degrees of freedom, and a bound on its error."""
    freedom = max(sum(g.rows for g in groups.values()) - len(groups), 1)
    covariance = sum((g.rows - 1) * g.covariance for g in groups.values())
    error = sum((g.rows - 1) * g.covariance_error for g in groups.values())
    return np.asarray(covariance) / freedom, np.asarray(error) / freedom


class Square(NamedTuple):
    """A symmetric matrix with a bound on the error of each element."""

    value: Floats
    error: Floats


def products(found: Moments, centred: bool) -> Square:
    """The mean product of each two columns, of centred columns or as they are."""
    share = (found.rows - 1) / found.rows
    value, error = share * found.covariance, share * found.covariance_error
    if not centred:
        size, off = np.abs(found.mean), found.mean_error
        value = value + np.outer(found.mean, found.mean)
        error = error + np.outer(size, off) + np.outer(off, size) + np.outer(off, off)
    return Square(value, error)


def one_size(a: Square) -> tuple[Floats, Floats, float]:
    """Sizes of columns, the matrix with columns of size one, and a bound on the norm of its error.

    A column whose square has fewer than two digits above its error is taken for zero.
    """
    known = a.value.diagonal() > 100 * a.error.diagonal()
    size = np.sqrt(np.where(known, a.value.diagonal(), 1.0))
    both, scale = np.outer(known, known), np.outer(size, size)
    noise = float(np.linalg.norm(np.where(both, a.error / scale, 0.0), 2))
    return size, np.where(both, a.value / scale, 0.0), noise


class Solution(NamedTuple):
    """What solves A x = b for columns b: x, a bound on its error, and the rank of A within its error."""

    x: Floats
    error: Floats
    rank: int


def solve(a: Square, b: Floats, b_error: Floats) -> Solution:
    """Solves A x = b for a matrix without eigenvalues below zero, and bounds what errors of A and b do to x.

    Columns are brought to one size before they are judged: directions in which A is not above its error are
    left out, and x is the shortest solution, as least squares have it. With A' = A + E and b' = b + δ the
    true ones, A'(x' − x) = δ − E x, and so |x' − x| ≤ (I − |A⁻¹||E|)⁻¹ |A⁻¹| (|δ| + |E||x| + rounding),
    element by element.
    """
    size, one, noise = one_size(a)
    scale, d = np.outer(size, size), len(size)
    values, axes = np.linalg.eigh(one)
    least = max(noise, d * 2.0**-50 * max(float(values[-1]), 0.0))
    keep = values > least
    inverse = (axes[:, keep] / np.maximum(values[keep], 1e-300)) @ axes[:, keep].T
    x = inverse @ (b / size[:, None]) / size[:, None]
    # Once more for what was rounded.
    x += inverse @ ((b - a.value @ x) / size[:, None]) / size[:, None]
    if not keep.all():
        free = axes[:, ~keep] / size[:, None]
        x -= free @ np.linalg.lstsq(free, x, rcond=None)[0]
        return Solution(x, np.full_like(x, np.inf), int(keep.sum()))
    magnitude = np.abs(inverse) / scale
    spread = magnitude @ a.error
    if np.abs(np.linalg.eigvals(spread)).max(initial=0.0) >= 1:
        return Solution(x, np.full_like(x, np.inf), d)
    rounding = d * 2.0**-50 * (np.abs(a.value) @ np.abs(x) + np.abs(b))
    residual = b_error + a.error @ np.abs(x) + np.abs(b - a.value @ x) + rounding
    return Solution(x, np.linalg.solve(np.eye(d) - spread, magnitude @ residual), d)
