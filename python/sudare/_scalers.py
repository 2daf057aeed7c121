"""Scalers before trees: the thresholds of raw numbers that decide as the trees do on scaled ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._errors import InputError, ShapeError, UnsupportedError
from ._estimators import answers

#: Scalers of scikit-learn that keep the order of each column's numbers, or reverse it.
_KNOWN = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_LARGEST = np.finfo(np.float64).max


def scaled(scalers: list[Any], rows: ArrayLike) -> NDArray[np.float64]:
    """Rows as scalers give them, in their own arithmetic; infinities become the largest numbers.

    Raises `UnsupportedError` for other steps, `InputError` for rows that the scalers do not take, and where
    they give NaN.
    """
    values = np.asarray(rows, dtype=np.float64)
    for scaler in scalers:
        name = type(scaler).__name__
        if name not in _KNOWN:
            raise UnsupportedError(
                f"{name} is not compiled before trees; {', '.join(_KNOWN)} are. Compile the trees "
                "alone, sd.compile(pipeline[-1], example=pipeline[:-1].transform(X)), and transform before "
                "encryption"
            )
        # A scaler may write into what it is given.
        values = answers(scaler, "transform", values.copy()).astype(np.float64)
        if np.isnan(values).any():
            raise InputError(
                f"{name} gives NaN: an example, or a number that it was fitted with, is not finite"
            )
        values = np.clip(values, -_LARGEST, _LARGEST)
    return values


def raw_thresholds(
    scalers: list[Any],
    features: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    single: bool,
    inputs: int,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Thresholds of raw numbers, of which each has the decisions of a scaled one, and where sides change.

    For each finite double x, x ≤ raw is what scaled(x) ≤ threshold is, or its opposite where sides change:
    raw is the largest double for which that holds, −∞ if none is. Scaled numbers are compared in `single`
    precision. Rounding keeps order, so that bisection over all doubles finds it.

    Raises as `scaled`, and `ShapeError` for features that rows of so many inputs do not have.
    """
    ends = scaled(scalers, np.outer([-_LARGEST, 0.0, _LARGEST], np.ones(inputs)))
    if features.max() >= inputs:
        raise ShapeError(f"the trees compare more features than the {inputs} columns that the examples have")
    falls = ends[0] > ends[-1]
    pairs, back = np.unique(np.stack([features, thresholds]), axis=1, return_inverse=True)
    columns = pairs[0].astype(np.int64)
    at = np.arange(len(columns)) - np.searchsorted(columns, columns), columns
    rows = np.zeros((at[0].max() + 1, inputs))
    lowest, low, high = (
        np.full(len(columns), _in_order(np.array(x).view(np.int64))) for x in (-_LARGEST, -np.inf, np.inf)
    )
    # The mean of both; their sum would leave 64 bits.
    while ((middle := (low & high) + ((low ^ high) >> 1)) > low).any():
        rows[at] = _in_order(np.maximum(middle, lowest)).view(np.float64)
        values = scaled(scalers, rows)[at]
        with np.errstate(over="ignore"):
            below = (values.astype(np.float32) if single else values) <= pairs[1]
        holds = below != falls[columns]
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return _in_order(low).view(np.float64)[back.reshape(-1)], falls[features]


def _in_order(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bits of doubles as integers in the same order; and of such integers the bits."""
    return bits ^ ((bits >> 63) & np.iinfo(np.int64).max)
