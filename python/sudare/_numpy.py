"""NumPy's functions made of indices, concatenation, products and sums, once for all encrypted arrays.

Encrypted numbers and encrypted integers have what is used here, each in its own way: `x[...]`, `reshape`,
`transpose`, `numpy.concatenate`, `numpy.where` with a plain mask, `+ - * @`, `sum`, and `_lines`, which puts
lines along an axis in another order. A function costs what it is made of.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from ._errors import ShapeError, UnsupportedError
from ._opaque import Opaque
from ._remedies import NoAttributeError
from ._values import array

Handlers = dict[str, Callable[..., Any]]
NOT_GIVEN = getattr(np, "_NoValue", None)


def called(
    handlers: Handlers,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    refusal: Callable[[str, Sequence[Any]], UnsupportedError],
) -> Any:
    """A function of NumPy, by its handler. Arguments that say what NumPy takes anyway are left out."""
    name = function.__name__
    module = function.__module__
    handler = handlers.get(name) if module in ("numpy", "numpy.linalg") else None
    if module == "numpy.linalg":
        handler = handlers.get(f"linalg.{name}", handler)
    if handler is None:
        raise refusal(name, args)
    given = {k: v for k, v in kwargs.items() if not _usual(function, k, v)}
    return _taken(name, handler, args, given)


def along_first(name: str, method: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """A ufunc's `reduce` or `accumulate` by an array's method: along axis 0 unless another is said."""
    given = {k: v for k, v in kwargs.items() if k == "axis" or not (v is None or v is NOT_GIVEN)}
    return _taken(name, method, (), {"axis": 0} | given)


def _taken(name: str, handler: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """What a handler gives, which has to take all of the arguments."""
    signature = inspect.signature(handler)
    try:
        signature.bind(*args, **given)
    except TypeError:
        more = [f"{k}=" for k in given if k not in signature.parameters]
        raise UnsupportedError(
            f"numpy.{name} of what is encrypted takes {signature}; "
            f"leave {', '.join(more) or 'the rest'} out, and do it after decryption"
        ) from None
    return handler(*args, **given)


def _usual(function: Callable[..., Any], name: str, value: Any) -> bool:
    """Whether an argument is what the function takes without it."""
    if value is NOT_GIVEN:
        return True
    try:
        default = inspect.signature(function).parameters[name].default
    except (KeyError, ValueError):
        # Before 2.4 NumPy's functions in C have no signature; of their axes, none means all.
        return value is None and name != "axis"
    return value is default or (isinstance(value, (bool, str)) and value == default)


# Shapes and axes.


def one_axis(a: Any) -> Any:
    """At least one axis."""
    return with_axes(a, 1)


def two_axes(a: Any) -> Any:
    """At least two axes, as NumPy's atleast_2d."""
    return with_axes(a, 2)


def held(a: Any) -> Any:
    """An encrypted array, or what NumPy makes of plain values."""
    return a if isinstance(a, Opaque) else array(a)


def encrypted(a: Any) -> bool:
    """Whether it is an encrypted array."""
    return isinstance(a, Opaque)


def with_axes(a: Any, least: int) -> Any:
    """New axes of length 1 in front, up to a number of axes."""
    x = held(a)
    missing = least - x.ndim
    return x[(None,) * missing] if missing > 0 else x


def flattened(a: Any) -> Any:
    """All elements as a vector."""
    return held(a).ravel()


def axis_of(a: Any, axis: Any) -> int:
    """An axis, counted from the first.

    Raises `ShapeError` for one that there is not.
    """
    try:
        at = operator.index(axis)
    except TypeError:
        raise ShapeError(f"an axis is a whole number, not {axis!r}") from None
    if not -a.ndim <= at < a.ndim:
        raise ShapeError(f"shape {a.shape} has no axis {axis}")
    return at % int(a.ndim)


def _axes(a: Any, axis: Any) -> list[int]:
    if axis is None:
        return list(range(a.ndim))
    return [axis_of(a, n) for n in (axis if isinstance(axis, (tuple, list)) else (axis,))]


def _plain(a: Any, what: str) -> Any:
    if isinstance(a, Opaque):
        raise UnsupportedError(f"{what} is plain; {type(a).__name__} is encrypted")
    return array(a)


def _shaped(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What NumPy makes of shapes and places, which are plain; its refusal is one of shapes."""
    try:
        return function(*args, **kwargs)
    except (ValueError, IndexError, TypeError) as error:
        raise ShapeError(f"numpy.{function.__name__}: {error}") from None


def in_order(a: Any, shape: Any, order: str = "C") -> Any:
    """The same elements in another shape, read row by row ("C") or column by column ("F").

    Raises `UnsupportedError` for another order.
    """
    if order in ("F", "f"):
        sides = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        return a.transpose().reshape(sides[::-1]).transpose()
    if order not in ("C", "A", "K", "c", "a", "k", None):
        raise UnsupportedError(f"elements are read by rows, order='C', or by columns, 'F', not {order!r}")
    return a.reshape(shape)


def _reshape(a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    return in_order(a, newshape if shape is None else shape, order)


def _expand_dims(a: Any, axis: Any) -> Any:
    wanted = axis if isinstance(axis, (tuple, list)) else (axis,)
    total = len(a.shape) + len(wanted)
    new = {n % total for n in wanted if -total <= n < total}
    if len(new) != len(wanted):
        raise ShapeError(f"{axis} are not axes of an array with {total}")
    return a[tuple(None if n in new else slice(None) for n in range(total))]


def _squeeze(a: Any, axis: Any = None) -> Any:
    one = {n for n in _axes(a, axis) if a.shape[n] == 1}
    if axis is not None and len(one) != len(_axes(a, axis)):
        raise ShapeError(f"axis {axis} of shape {a.shape} does not have length 1, so it stays")
    return a[tuple(0 if n in one else slice(None) for n in range(a.ndim))]


def _reordered(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that puts axes in another order: the lengths of 0, 1, 2 … show where each goes."""

    def done(a: Any, source: Any, destination: Any) -> Any:
        order = _shaped(function, np.empty(range(a.ndim)), source, destination).shape
        return a if order == tuple(range(a.ndim)) else a.transpose(order)

    return done


# Lines in another order.


def _flip(m: Any, axis: Any = None) -> Any:
    return functools.reduce(lambda x, at: x._lines(at, np.arange(x.shape[at])[::-1]), _axes(m, axis), m)


def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    first, second = _axes(m, tuple(axes))
    if first == second:
        raise ShapeError(f"a rotation is in the plane of two axes, not of {axes}")
    turns = operator.index(k) % 4
    if turns == 2:
        return _flip(m, (first, second))
    if turns == 0:
        return m
    swapped = FUNCTIONS["swapaxes"]
    return (
        swapped(_flip(m, second), first, second) if turns == 1 else _flip(swapped(m, first, second), second)
    )


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return a if a.ndim == 0 else _roll(a.ravel(), shift, 0).reshape(a.shape)
    for by, along in _shaped(np.broadcast, shift, axis):
        at = axis_of(a, int(along))
        a = a._lines(at, np.roll(np.arange(a.shape[at]), int(by)))
    return a


def _tile(A: Any, reps: Any) -> Any:
    times = tuple(reps) if isinstance(reps, (tuple, list, np.ndarray)) else (reps,)
    a = with_axes(A, len(times))
    times = (1,) * (a.ndim - len(times)) + tuple(operator.index(n) for n in times)
    for at, n in reversed(list(enumerate(times))):
        if n != 1:
            order = np.tile(np.arange(a.shape[at]), n)
            # What is empty may be plain.
            a = a._lines(at, order) if encrypted(a) else a.take(order, at)
    return a


def _along(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that repeats lines along an axis or leaves some out, as it does with their numbers."""

    def done(a: Any, chosen: Any, axis: Any = None) -> Any:
        x, at = (a.ravel(), 0) if axis is None else (a, axis_of(a, axis))
        return x._lines(at, _shaped(function, np.arange(x.shape[at]), _plain(chosen, "what is chosen")))

    return done


def _take(a: Any, indices: Any, axis: Any = None) -> Any:
    x, at = (a.ravel(), 0) if axis is None else (a, axis_of(a, axis))
    places = _shaped(np.take, np.arange(x.shape[at]), _plain(indices, "what is picked"))
    lines = x._lines(at, np.ravel(places))
    return lines.reshape(x.shape[:at] + np.shape(places) + x.shape[at + 1 :])


def _resize(a: Any, new_shape: Any) -> Any:
    x = a.ravel()
    order = _shaped(np.resize, np.arange(x.size), new_shape)
    return x._lines(0, order.ravel()).reshape(order.shape)


def _split(ary: Any, indices_or_sections: Any, axis: Any = 0, *, even: bool = True) -> list[Any]:
    at = axis_of(ary, axis)
    parts = _shaped(np.split if even else np.array_split, np.arange(ary.shape[at]), indices_or_sections)
    return [ary._lines(at, part) for part in parts]


# Several put together.


def _joined(prepare: Callable[..., Any], axis: Callable[..., int]) -> Callable[..., Any]:
    """A function that prepares each of several arrays and concatenates them, along an axis that they say."""

    def done(tup: Any) -> Any:
        parts = [prepare(a) for a in tup]
        return np.concatenate(parts, axis(parts))

    return done


def _stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    parts = [held(a) for a in arrays]
    if len({a.shape for a in parts}) != 1:
        raise ShapeError(
            f"what is stacked has one shape, not {sorted({a.shape for a in parts})}; see numpy.concatenate"
        )
    total = parts[0].ndim + 1
    if not -total <= axis < total:
        raise ShapeError(f"stacked arrays of shape {parts[0].shape} have no axis {axis}")
    new = (slice(None),) * (axis % total) + (None,)
    return np.concatenate([a[new] for a in parts], axis % total)


def _block(arrays: Any) -> Any:
    def depth(x: Any) -> int:
        return 1 + max(map(depth, x), default=0) if isinstance(x, list) else 0

    def axes(x: Any) -> int:
        return max(map(axes, x), default=0) if isinstance(x, list) else len(np.shape(x))

    most = depth(arrays)
    total = max(most, axes(arrays))

    def built(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            return with_axes(x, total)
        return np.concatenate([built(part, level + 1) for part in x], axis=level - most)

    return built(arrays, 0)


def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        return np.concatenate([flattened(arr), flattened(values)])
    return np.concatenate([arr, values], axis)


def _pad(array: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0) -> Any:
    a, kinds = array, ("constant", "edge", "wrap", "reflect", "symmetric")
    if mode not in kinds:
        raise UnsupportedError(
            f"numpy.pad of what is encrypted has the modes {', '.join(kinds)}, not {mode!r}"
        )
    widths = _shaped(np.broadcast_to, pad_width, (a.ndim, 2))
    values = _shaped(np.broadcast_to, _plain(constant_values, "what is put around"), (a.ndim, 2))
    for at, ((before, after), around) in enumerate(zip(widths.tolist(), values, strict=True)):
        if mode != "constant":
            order = _shaped(np.pad, np.arange(a.shape[at]), (before, after), mode=mode)
            a = a._lines(at, order)
            continue
        if min(before, after) < 0:
            raise ShapeError(f"{(before, after)} lines cannot be put around an axis; give numbers from 0 on")
        parts = [_filled(a, at, before, around[0]), a, _filled(a, at, after, around[1])]
        parts = [part for part in parts if part.shape[at]]
        a = np.concatenate(parts, at) if len(parts) > 1 else a
    return a


def _filled(a: Any, at: int, count: int, value: Any) -> Any:
    """Plain lines that go beside an array."""
    return np.full((*a.shape[:at], count, *a.shape[at + 1 :]), value, a.dtype)


# Masks and diagonals.


def _triangle(mask: Callable[..., Any]) -> Callable[..., Any]:
    def done(m: Any, k: int = 0) -> Any:
        if m.ndim == 0:
            raise ShapeError("a triangle is that of a matrix or a vector, not of a number")
        sides = m.shape[-2:] if m.ndim > 1 else (m.shape[0], m.shape[0])
        return np.where(mask(np.ones(sides, bool), k), m, np.zeros((), m.dtype))

    return done


def _diag(v: Any, k: int = 0) -> Any:
    if v.ndim != 1:
        return v.diagonal(k)
    square = np.where(np.eye(v.size, dtype=bool), v[:, None], np.zeros((), v.dtype))
    return _pad(square, ((0, k), (k, 0)) if k >= 0 else ((-k, 0), (0, -k))) if k else square


def _broadcast(*args: Any) -> Any:
    return tuple(np.broadcast_to(a, np.broadcast_shapes(*map(np.shape, args))) for a in args)


def _meshgrid(*xi: Any, indexing: str = "xy") -> Any:
    if len(xi) != 2 or indexing not in ("xy", "ij"):
        raise UnsupportedError("numpy.meshgrid of what is encrypted takes two vectors, indexing='xy' or 'ij'")
    down, across = (xi[1], xi[0]) if indexing == "xy" else xi
    grids = _broadcast(flattened(down)[:, None], flattened(across)[None, :])
    return grids[::-1] if indexing == "xy" else grids


# Products and sums.


def _diff(a: Any, n: int = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Any:
    at = axis_of(a, axis)
    if n < 0:
        raise ShapeError(f"differences are taken 0 times or more, not {n} times")
    sides = (*a.shape[:at], 1, *a.shape[at + 1 :])
    parts = [
        part if isinstance(part, Opaque) or np.ndim(part) else np.broadcast_to(array(part), sides)
        for part in (prepend, a, append)
        if part is not None and part is not NOT_GIVEN
    ]
    a = np.concatenate(parts, at) if n and len(parts) > 1 else a
    before = (slice(None),) * at
    for _ in range(n):
        later, earlier = a[(*before, slice(1, None))], a[(*before, slice(None, -1))]
        a = later != earlier if a.dtype == np.bool_ else later - earlier
    return a


def _cumulative_sum(x: Any, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> Any:
    sums = x.cumsum(0 if axis is None and x.ndim == 1 else axis, dtype=dtype)
    if include_initial is False:
        return sums
    at = axis_of(sums, 0 if axis is None else axis)
    return np.concatenate([_filled(sums, at, 1, 0), sums], at)


def _type_of(x: Any) -> Any:
    return x.dtype if encrypted(x) else x


def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    if returned is not False:
        raise UnsupportedError("numpy.average does not return the sum of weights; write numpy.sum(weights)")
    if weights is None:
        return np.mean(a, axis, keepdims=keepdims)
    known = _plain(weights, "a weight")
    if known.shape != a.shape:
        over = _axes(a, axis)
        if axis is None or known.shape != tuple(a.shape[n] for n in over):
            raise ShapeError(
                f"weights of shape {known.shape} are not of the shape {a.shape}, nor of its axes {axis}; "
                "name the axes that they go along"
            )
        sides = [side if n in over else 1 for n, side in enumerate(a.shape)]
        known = known.transpose(np.argsort(over)).reshape(sides[min(over) :])
    whole = np.asarray(np.broadcast_to(known, a.shape).sum(axis=axis, keepdims=keepdims))
    # One number for all is cheaper than as many equal ones.
    same = (whole == whole.flat[0]).all()
    return (a * known).sum(axis, keepdims=keepdims) / (float(whole.flat[0]) if same else whole)


def _matrix_power(a: Any, n: Any) -> Any:
    exponent = operator.index(n)
    if exponent < 0:
        raise UnsupportedError("powers of an encrypted matrix are 0, 1, 2 and so on; it has no inverse here")
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"powers are those of a square matrix, not of shape {a.shape}")
    if exponent < 2:
        return a if exponent else np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    half = _matrix_power(a, exponent // 2)
    return half @ half if exponent % 2 == 0 else half @ _matrix_power(a, exponent - exponent // 2)


def dot(a: Any, b: Any) -> Any:
    """The product of a last axis with a last but one, or an only one. Of many matrices it is not `@`."""
    return np.matmul(a, b) if np.ndim(b) < 3 else _tensordot(a, b, (-1, -2))


def _inner(a: Any, b: Any) -> Any:
    y = held(b)
    if () in (np.shape(a), y.shape):
        return a * y
    return np.matmul(a, y.T) if y.ndim < 3 else _tensordot(a, y, (-1, -1))


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = held(a), held(b)
    if isinstance(axes, (int, np.integer)):
        axes = range(x.ndim - int(axes), x.ndim), range(int(axes))
    over = [_axes(v, tuple(n) if np.ndim(n) else n) for v, n in zip((x, y), axes, strict=True)]
    if [x.shape[n] for n in over[0]] != [y.shape[n] for n in over[1]]:
        raise ShapeError(f"tensordot: shapes {x.shape} and {y.shape} do not go together over {axes}")
    left, right = ([n for n in range(v.ndim) if n not in gone] for v, gone in zip((x, y), over, strict=True))
    first, second = x.transpose((*left, *over[0])), y.transpose((*over[1], *right))
    if not left and not right:
        products = first * second
        return products.sum(dtype=products.dtype)
    if not over[0]:
        return first[(..., *[None] * y.ndim)] * second
    if len(over[0]) > 1 or len(left) > 1 or len(right) > 1:
        inner = int(np.prod([x.shape[n] for n in over[0]]))
        first, second = (
            first.reshape((-1, inner) if left else (inner,)),
            second.reshape((inner, -1) if right else (inner,)),
        )
    return np.matmul(first, second).reshape([*(x.shape[n] for n in left), *(y.shape[n] for n in right)])


def _matvec(x1: Any, x2: Any) -> Any:
    if np.ndim(x2) == 1:
        return np.matmul(x1, x2)
    # The rows of one matrix are vectors; of several each has its own.
    if np.ndim(x1) < 3:
        return np.matmul(x2, held(x1).T)
    return np.matmul(x1, held(x2)[..., None])[..., 0]


def _vecmat(x1: Any, x2: Any) -> Any:
    if np.ndim(x1) == 1 or np.ndim(x2) < 3:
        return np.matmul(x1, x2)
    return np.matmul(held(x1)[..., None, :], x2)[..., 0, :]


def _vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    products = np.multiply(x1, x2)
    return np.sum(products, axis=axis, dtype=products.dtype)


def _convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    first: Any = one_axis(a)
    second: Any = one_axis(v)
    if first.ndim != 1 or second.ndim != 1 or not (first.size and second.size):
        raise ShapeError(f"a convolution is that of two vectors, not of shapes {first.shape}, {second.shape}")
    if mode not in ("full", "same", "valid"):
        raise UnsupportedError(f"a convolution is 'full', 'same' or 'valid', not {mode!r}")
    if not encrypted(first) or first.size < second.size:
        first, second = second, first
    n, m = first.size, second.size
    begin, count = {"full": (0, n + m - 1), "same": ((min(n, m) - 1) // 2, max(n, m))}.get(
        mode, (min(n, m) - 1, max(n, m) - min(n, m) + 1)
    )
    if not encrypted(first) or encrypted(second) or first.dtype.kind != "f":
        kernel, other = (second, first) if encrypted(first) else (first, second)
        terms = [_pad(other * kernel[k], (k, kernel.size - 1 - k)) for k in range(kernel.size)]
        return functools.reduce(operator.add, terms)[begin : begin + count]
    # A plain one is a matrix of as many diagonals.
    rows, columns = np.indices((n, n + m - 1))
    shift = columns - rows
    band = np.where((shift >= 0) & (shift < m), second[np.clip(shift, 0, m - 1)], 0)
    return first @ band[:, begin : begin + count]


def _correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    first, second = one_axis(a), one_axis(v)
    if first.size < second.size:
        return np.flip(_convolve(second, np.flip(first), mode))
    return _convolve(first, np.flip(second), mode)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    at = axis_of(y, axis)
    n = y.shape[at]
    steps = np.full(n - 1, float(dx)) if x is None else np.diff(_plain(x, "a place"))
    if steps.shape != (n - 1,):
        raise ShapeError(f"{n} values need {n} places, not {steps.size + 1}")
    weights = np.concatenate([steps, [0]]) / 2 + np.concatenate([[0], steps]) / 2
    return (y * weights.reshape((-1,) + (1,) * (y.ndim - 1 - at))).sum(axis=at)


def isin(element: Any, test_elements: Any, assume_unique: bool = False, *, invert: bool = False) -> Any:
    among = flattened(test_elements)
    found = (element[..., None] == among).any(axis=-1)
    return ~found if invert else found


def _each(function: Any) -> Any:
    """A function of any number of arrays."""
    return lambda *arys: function(arys[0]) if len(arys) == 1 else tuple(function(a) for a in arys)


def _like(value: float) -> Any:
    def made(a: Any, fill_value: Any = value, dtype: Any = None) -> Any:
        return np.full(a.shape, fill_value, dtype=dtype or a.dtype)

    return made


def outer(handler: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """An operation of every element of one array with every element of another: `ufunc.outer`."""
    first, axes = held(a), len(np.shape(b))
    return handler(first[(..., *[None] * axes)] if axes else first, b)


#: Of all encrypted arrays.
FUNCTIONS: Handlers = {
    "reshape": _reshape,
    "ravel": lambda a, order="C": in_order(a, -1, order),
    "transpose": lambda a, axes=None: a.transpose() if axes is None else a.transpose(axes),
    "matrix_transpose": lambda x: np.swapaxes(x, -1, -2),
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "swapaxes": _reordered(np.swapaxes),
    "moveaxis": _reordered(np.moveaxis),
    "atleast_1d": _each(one_axis),
    "atleast_2d": _each(two_axes),
    "broadcast_arrays": _broadcast,
    "meshgrid": _meshgrid,
    "flip": _flip,
    "flipud": lambda m: _flip(m, 0),
    "fliplr": lambda m: _flip(m, 1),
    "rot90": _rot90,
    "roll": _roll,
    "tile": _tile,
    "repeat": lambda a, repeats, axis=None: _along(np.repeat)(a, repeats, axis),
    "delete": lambda arr, obj, axis=None: _along(np.delete)(arr, obj, axis),
    "compress": lambda condition, a, axis=None: _take(a, np.flatnonzero(condition), axis),
    "take": _take,
    "resize": _resize,
    "split": _split,
    "array_split": functools.partial(_split, even=False),
    "vsplit": lambda ary, n: _split(ary, n, 0),
    "hsplit": lambda ary, n: _split(ary, n, 1 if ary.ndim > 1 else 0),
    "unstack": lambda x, axis=0: tuple(np.moveaxis(x, axis, 0)),
    "vstack": _joined(two_axes, lambda parts: 0),
    "hstack": _joined(one_axis, lambda parts: int(parts[0].ndim > 1)),
    "column_stack": _joined(lambda a: a if len(np.shape(a)) > 1 else flattened(a)[:, None], lambda parts: 1),
    "stack": _stack,
    "block": _block,
    "append": _append,
    "pad": _pad,
    "tril": _triangle(np.tril),
    "triu": _triangle(np.triu),
    "diag": _diag,
    "diagonal": lambda a, offset=0, axis1=0, axis2=1: a.diagonal(offset, axis1, axis2),
    "trace": lambda a, offset=0, axis1=0, axis2=1: a.trace(offset, axis1, axis2),
    "linalg.diagonal": lambda x, *, offset=0: x.diagonal(offset, -2, -1),
    "linalg.trace": lambda x, *, offset=0: x.trace(offset, -2, -1),
    "diff": _diff,
    "ediff1d": lambda ary: _diff(ary.ravel()),
    "cumsum": lambda a, axis=None, dtype=None: a.cumsum(axis, dtype=dtype),
    "cumulative_sum": _cumulative_sum,
    "average": _average,
    "matmul": lambda x1, x2: np.matmul(x1, x2),
    "inner": _inner,
    "outer": lambda a, b: flattened(a)[:, None] * flattened(b)[None, :],
    "vdot": lambda a, b: np.dot(flattened(a), flattened(b)),
    "vecdot": _vecdot,
    "tensordot": _tensordot,
    "matrix_power": _matrix_power,
    "multi_dot": lambda arrays: functools.reduce(np.matmul, arrays),
    "convolve": _convolve,
    "correlate": _correlate,
    "zeros_like": _like(0),
    "ones_like": _like(1),
    "full_like": _like(0),
    "empty_like": _like(0),
    "copy": lambda a: a.copy(),
    "astype": lambda x, dtype: x if x.dtype == dtype else x.astype(dtype),
    "result_type": lambda *arrays_and_dtypes: np.result_type(*map(_type_of, arrays_and_dtypes)),
    "can_cast": lambda from_, to, casting="safe": np.can_cast(_type_of(from_), to, casting),
    "real": lambda val: val,
    "imag": lambda val: np.zeros(val.shape, val.dtype),
    "iscomplexobj": lambda x: False,
    "isrealobj": lambda x: True,
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
}

#: Of NumPy's element-wise functions, those that are none.
UFUNCS: Handlers = {
    "matvec": _matvec,
    "vecmat": _vecmat,
    "vecdot": _vecdot,
    "conjugate": lambda x: x,
    "positive": lambda x: x,
}


class Methods:
    """What arrays have as methods and NumPy as functions."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that decryption gives."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise UnsupportedError("a number has no length; give an array")
        return self.shape[0]

    def flatten(self, order: str = "C") -> Any:
        """All elements as a vector, by rows, or with "F" by columns.

        Raises `UnsupportedError` for another order, `ShapeError` for a batch.
        """
        return in_order(self, -1, order)

    def ravel(self, order: str = "C") -> Any:
        """All elements as a vector, by rows, or with "F" by columns.

        Raises `UnsupportedError` for another order, `ShapeError` for a batch.
        """
        return in_order(self, -1, order)

    def squeeze(self, axis: Any = None) -> Any:
        """Without the axes of length 1, or without those that are named.

        Raises `ShapeError` for an axis that there is not, or that is longer.
        """
        return _squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Two axes in each other's place.

        Raises `ShapeError` for an axis that there is not.
        """
        return FUNCTIONS["swapaxes"](self, axis1, axis2)

    def repeat(self, repeats: Any, axis: int | None = None) -> Any:
        """Each line along an axis, or each element, so many times.

        Raises `ShapeError` for an axis that there is not, `UnsupportedError` for numbers that are encrypted.
        """
        return FUNCTIONS["repeat"](self, repeats, axis)

    def take(self, indices: Any, axis: int | None = None) -> Any:
        """Lines along an axis, or elements, by their plain numbers.

        Raises `ShapeError` for lines that there are not, `UnsupportedError` for numbers that are encrypted.
        """
        return _take(self, indices, axis)

    def conj(self) -> Any:
        """The same: what is encrypted is real."""
        return self

    conjugate = conj


X = TypeVar("X", bound="Indexed")


class Indexed(NDArrayOperatorsMixin, Methods, Opaque):
    """An array of any number of axes whose elements are moved by their numbers."""

    # x += y names another array x.
    __iadd__ = NDArrayOperatorsMixin.__add__
    __isub__ = NDArrayOperatorsMixin.__sub__
    __imul__ = NDArrayOperatorsMixin.__mul__
    __ifloordiv__ = NDArrayOperatorsMixin.__floordiv__
    __imod__ = NDArrayOperatorsMixin.__mod__
    __ipow__ = NDArrayOperatorsMixin.__pow__
    __imatmul__ = NDArrayOperatorsMixin.__matmul__
    __ilshift__ = NDArrayOperatorsMixin.__lshift__
    __irshift__ = NDArrayOperatorsMixin.__rshift__
    __iand__ = NDArrayOperatorsMixin.__and__
    __ior__ = NDArrayOperatorsMixin.__or__
    __ixor__ = NDArrayOperatorsMixin.__xor__

    #: The refusal of an encrypted index.
    _index: ClassVar[str]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Functions of NumPy of which one operand is encrypted."""
        raise NotImplementedError

    def _take(self: X, indices: NDArray[Any]) -> X:
        """Elements by their numbers in C order, in the shape of these."""
        raise NotImplementedError

    @staticmethod
    def _refusal(name: str) -> UnsupportedError:
        """What to write in place of a function of NumPy."""
        raise NotImplementedError

    @property
    def _indices(self) -> NDArray[np.intp]:
        return np.arange(self.size, dtype=np.intp).reshape(self.shape)

    def __getitem__(self: X, key: Any) -> X:
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, Opaque) for k in keys):
            raise UnsupportedError(self._index)
        return self._take(np.asarray(self._indices[key]))

    def __iter__(self: X) -> Iterator[X]:
        return (self[i] for i in range(len(self)))

    def __getattr__(self, name: str) -> NoReturn:
        """What an array has and an encrypted one has not says what to write."""
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise NoAttributeError(f"an encrypted array has no {name}; {self._refusal(name)}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def reshape(self: X, *shape: Any, order: str = "C") -> X:
        """The same elements in another shape, read by rows, or with "F" by columns.

        Raises `ShapeError` for a shape of another number of elements.
        """
        if order != "C":
            return in_order(self, shape[0] if len(shape) == 1 else shape, order)  # type: ignore[no-any-return]
        try:
            return self._take(self._indices.reshape(*shape))
        except ValueError as error:
            raise ShapeError(str(error)) from None

    def transpose(self: X, *axes: Any) -> X:
        """The axes in another order.

        Raises `ShapeError` for what is no order of the axes.
        """
        try:
            return self._take(self._indices.transpose(*axes))
        except ValueError as error:
            raise ShapeError(str(error)) from None

    def diagonal(self: X, offset: int = 0, axis1: int = 0, axis2: int = 1) -> X:
        """A diagonal, the main one or another above (`offset` > 0) or below it.

        Raises `ShapeError` for an array that has not both axes.
        """
        try:
            return self._take(self._indices.diagonal(offset, axis1, axis2))
        except ValueError as error:
            raise ShapeError(str(error)) from None

    def _lines(self: X, at: int, order: NDArray[Any]) -> X:
        """Lines along an axis in another order."""
        return self._take(self._indices.take(order.astype(np.intp), axis=at))

    @property
    def T(self: X) -> X:  # noqa: N802 (NumPy's name)
        """The transpose."""
        return self.transpose()

    @property
    def mT(self: X) -> X:  # noqa: N802 (NumPy's name)
        """The last two axes in each other's place.

        Raises `ShapeError` for an array of fewer axes.
        """
        return self.swapaxes(-1, -2)  # type: ignore[no-any-return]

    def _to(self: X, shape: tuple[int, ...]) -> X:
        return self if shape == self.shape else self._take(_shaped(np.broadcast_to, self._indices, shape))
