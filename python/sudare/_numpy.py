"""More of NumPy's functions, composed of operators that expressions and encrypted matrices have.

Each costs what it is made of: slices, sums and products with plain matrices.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ._array import FUNCTIONS, concatenate, flattened, one_axis, plain, two_axes, unsupported
from ._errors import ShapeError, UnsupportedError


def _axis(a: Any, axis: Any) -> int:
    """An axis, counted from the first."""
    at = int(operator.index(axis))
    if not -a.ndim <= at < a.ndim:
        raise ShapeError(f"shape {a.shape} has no axis {axis}")
    return at % int(a.ndim)


def _picked(a: Any, axis: int, lines: slice) -> Any:
    """Lines along an axis."""
    return a[(slice(None),) * axis + (lines,)]


def _flip(m: Any, axis: Any = None) -> Any:
    axes = range(m.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return functools.reduce(lambda x, at: _picked(x, _axis(m, at), slice(None, None, -1)), axes, m)


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return a if a.ndim == 0 else _roll(a.ravel(), shift, 0).reshape(a.shape)
    at = _axis(a, axis)
    ahead = operator.index(shift) % a.shape[at]
    if ahead == 0:
        return a
    parts = [_picked(a, at, slice(-ahead, None)), _picked(a, at, slice(None, -ahead))]
    return concatenate(parts, at)


def _tile(A: Any, reps: Any) -> Any:
    times = tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)
    times = tuple(operator.index(n) for n in times)
    a = two_axes(A) if len(times) > 1 else one_axis(A)
    times = (1,) * (a.ndim - len(times)) + times
    if len(times) > 2 or min(times) < 1:
        raise ShapeError(f"{reps} repetitions make no matrix of shape {A.shape}")
    for axis, n in reversed(list(enumerate(times))):
        a = concatenate([a] * n, axis) if n > 1 else a
    return a


def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    if returned is not False:
        raise UnsupportedError("numpy.average returns no weights; numpy.sum(weights) are they")
    kept = keepdims is True
    if weights is None:
        return a.mean(axis, keepdims=kept)
    known = plain(weights)
    if known.ndim < a.ndim and axis is not None and _axis(a, axis) == 0:
        known = known[:, None]
    whole = np.asarray(np.broadcast_to(known, a.shape).sum(axis=axis, keepdims=kept))
    # One number for all is cheaper than as many equal ones.
    same = (whole == whole.flat[0]).all()
    return (a * known).sum(axis, keepdims=kept) / (float(whole.flat[0]) if same else whole)


def _swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    return a if _axis(a, axis1) == _axis(a, axis2) else a.T


def _split(ary: Any, indices_or_sections: Any, axis: Any = 0, *, even: bool = True) -> list[Any]:
    at = _axis(ary, axis)
    places = np.arange(ary.shape[at])
    try:
        parts = (np.split if even else np.array_split)(places, indices_or_sections)
    except ValueError as error:
        raise ShapeError(f"{ary.shape[at]} lines along axis {axis}: {error}") from None
    if not all(len(part) for part in parts):
        raise ShapeError("a part has no lines; an encrypted matrix has elements")
    return [_picked(ary, at, slice(int(part[0]), int(part[-1]) + 1)) for part in parts]


def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return concatenate([flattened(arr), flattened(values)] if axis is None else [arr, values], axis or 0)


def _diff(a: Any, n: int = 1, axis: Any = -1) -> Any:
    at = _axis(a, axis)
    if not 0 <= n < a.shape[at]:
        raise ShapeError(
            f"{a.shape[at]} lines have no differences {n} times; an encrypted matrix has elements"
        )
    for _ in range(n):
        a = _picked(a, at, slice(1, None)) - _picked(a, at, slice(None, -1))
    return a


def _cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    if dtype is not None or out is not None:
        raise UnsupportedError("numpy.cumsum has no dtype= and out= for encrypted matrices")
    if axis is None:
        return _cumsum(a.ravel(), 0)
    at = _axis(a, axis)
    lower = np.tril(np.ones((a.shape[at], a.shape[at])))
    return lower @ a if at == 0 else a @ lower.T


def _triangle(m: Any, mask: Any) -> Any:
    if m.ndim < 2:
        raise ShapeError(f"a triangle is that of a matrix, not of shape {m.shape}")
    return m * mask(np.ones(m.shape[-2:]))


def _matrix_power(a: Any, n: Any) -> Any:
    exponent = operator.index(n)
    if exponent < 1:
        raise UnsupportedError("powers of an encrypted matrix are 1, 2, 3 and so on")
    if exponent == 1:
        return a
    half = _matrix_power(a, exponent // 2)
    return half @ half if exponent % 2 == 0 else half @ _matrix_power(a, exponent - exponent // 2)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if axes == 1:
        return np.matmul(a, b)
    if axes == len(np.shape(a)) == len(np.shape(b)):
        return np.sum(a * b)
    raise unsupported("einsum", (a, b))


def _like(value: float) -> Any:
    def made(a: Any, fill_value: Any = value, **others: Any) -> Any:
        return np.full(a.shape, fill_value, dtype=others.get("dtype") or float)

    return made


def _each(function: Any) -> Any:
    """A function of any number of arrays."""
    return lambda *arys: function(arys[0]) if len(arys) == 1 else tuple(function(a) for a in arys)


FUNCTIONS.update(
    {
        "flip": _flip,
        "flipud": lambda m: _flip(m, 0),
        "fliplr": lambda m: _flip(m, 1),
        "roll": _roll,
        "tile": _tile,
        "average": _average,
        "swapaxes": _swapaxes,
        "split": _split,
        "array_split": functools.partial(_split, even=False),
        "vsplit": lambda ary, n: _split(ary, n, 0),
        "hsplit": lambda ary, n: _split(ary, n, 1 if ary.ndim > 1 else 0),
        "append": _append,
        "diff": _diff,
        "cumsum": _cumsum,
        "tril": lambda m, k=0: _triangle(m, lambda ones: np.tril(ones, k)),
        "triu": lambda m, k=0: _triangle(m, lambda ones: np.triu(ones, k)),
        "atleast_1d": _each(one_axis),
        "atleast_2d": _each(two_axes),
        "matrix_power": _matrix_power,
        "multi_dot": lambda arrays, **others: functools.reduce(np.matmul, arrays),
        "tensordot": _tensordot,
        "zeros_like": _like(0.0),
        "ones_like": _like(1.0),
        "full_like": _like(0.0),
        "copy": lambda a, **others: a,
    }
)
