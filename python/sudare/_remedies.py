"""What to write in place of a function of NumPy that there is not, for encrypted numbers and for integers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import UnsupportedError


class NoAttributeError(UnsupportedError, AttributeError):
    """What an array has and an encrypted one has not: `hasattr` says so, and the message what to write."""


ORDERING = ("max", "min", "amax", "amin", "argmax", "argmin", "ptp", "sort", "argsort", "partition")
RANKS = ("median", "percentile", "quantile", "any", "all", "unique", "searchsorted", "digitize", "histogram")
ROUNDED = ("round", "around", "rint", "floor", "ceil", "trunc", "fix")
SOLVED = ("inv", "solve", "det", "slogdet", "eig", "eigh", "svd", "qr", "cholesky", "pinv", "lstsq")
SHOWN = ("tolist", "item", "tobytes", "view", "data", "flat")
COMPARED = ("array_equal", "allclose", "isclose", "array_equiv")

AFTER = "numpy.{name} of what decrypt(x) gives"
GREATER = "sudare.greater(x, y, gap={tenth}, max_abs={high}, degree=15)"
ORDER = f"{GREATER}, decrypt first, or take integers: sudare.bits"
# What to write in place of a function that there is not; `high` is a bound on its operands.
REALS = {
    "einsum": "products by @, sums, and (x * y).sum()",
    "norm": "(x * x).sum(), and the root of what is decrypted",
    "cov": "sudare.table for the statistics of a table, or (x - x.mean(0)).T @ (x - x.mean(0)) / (n - 1)",
    "corrcoef": "sudare.table for the statistics of a table",
    "where": "sudare.greater(x, 0, gap={tenth}, max_abs={high}, degree=15) * (a - b) + b",
    "clip": "x.apply(lambda t: numpy.clip(t, -1, 1), ({low}, {high}), degree=15)",
    "kron": "numpy.vstack([numpy.hstack([a * x for a in row]) for row in plain])",
    "dstack": "numpy.stack or numpy.vstack: a matrix has two axes",
    "insert": "numpy.concatenate([x[:i], values, x[i:]])",
    "isin": "sudare.bits, whose integers are compared exactly: numpy.isin(sudare.bits().encrypt(ids), ids)",
    "maximum": "sudare.maximum(x, y, max_abs={high}, degree=15)",
    "minimum": "sudare.minimum(x, y, max_abs={high}, degree=15)",
    **dict.fromkeys(("choose", "put", "permutation"), "numpy.eye(n)[rows] @ x, for the rows that are wanted"),
    **dict.fromkeys(
        ("floor_divide", "remainder", "fmod", "divmod"),
        "numpy.{name} of what decrypt(x) gives, count the edges below by "
        f"{GREATER.replace('x, y', 'x, edge')}, or take integers: sudare.bits",
    ),
    **dict.fromkeys((*ROUNDED, *SOLVED), AFTER),
    **dict.fromkeys((*SHOWN, "astype"), "decrypt(x).{name}"),
    **dict.fromkeys((*ORDERING, *RANKS), ORDER),
    **dict.fromkeys(COMPARED, "numpy.{name} of what decrypt gives, or of the sum of (x - y) ** 2"),
    **dict.fromkeys(("prod", "cumprod"), "products of slices: x[0] * x[1]"),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), "nothing: what is encrypted is finite"),
    "nan_to_num": "x: what is encrypted is finite",
    "exp": "sudare.exp(x, ({low}, {high}), degree=7)",
    "tanh": "sudare.tanh(x, ({low}, {high}), degree=7)",
    "log": "sudare.log(x, ({tenth}, {high}), degree=7)",
    "sqrt": "sudare.sqrt(x, ({tenth}, {high}), degree=7)",
    "reciprocal": "sudare.reciprocal(x, ({tenth}, {high}), degree=7)",
    "sign": "sudare.sign(x, gap={tenth}, max_abs={high}, degree=15)",
    "greater": GREATER,
    "greater_equal": GREATER,
    **dict.fromkeys(("less", "less_equal"), GREATER.replace("x, y", "y, x")),
    "std": "sudare.sqrt(sudare.bounded(numpy.var(x), {high}), ({tenth}, {high}), degree=7) for a variance "
    "between those, or numpy.var(x), and the root of what decrypt gives",
    "absolute": "x ** 2, or x.apply(abs, ({low}, {high}), degree=15)",
    "hypot": "x * x + y * y, and the root of what decrypt gives",
    "gradient": "numpy.diff(x) and slices, which are sums: (x[2:] - x[:-2]) / 2",
    "apply_along_axis": "the function of x itself, whose sums take axis=",
}
INTEGERS = {
    **{k: REALS[k] for k in ("einsum", "insert", "kron", "gradient", "apply_along_axis")},
    **dict.fromkeys(SHOWN, "decrypt(x).{name}"),
    **dict.fromkeys((*SOLVED, "cov", "corrcoef", "norm", "histogram", "interp"), AFTER),
    **dict.fromkeys(("var", "std"), "x.sum() and (x * x).sum(), and the rest of what decrypt gives"),
    **dict.fromkeys(("median", "percentile", "quantile"), "numpy.sort(x)[k], the k-th of the order"),
    "argsort": "numpy.sort(x.astype('int32') * n + numpy.arange(n)) % n of n numbers: their places",
    "unique": "numpy.sort(x), and numpy.unique of what decrypt gives",
    "partition": "numpy.sort(x)",
    "choose": "sudare.where(condition, x, y)",
    "searchsorted": "(numpy.asarray(edges) < x[:, None]).sum(axis=1)",
    "digitize": "(numpy.asarray(edges) <= x[:, None]).sum(axis=1)",
    **dict.fromkeys(("allclose", "isclose"), "abs(x - y) <= most"),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), "nothing: integers are finite"),
    "nan_to_num": "x: integers are finite",
    "permutation": "x[numpy.random.permutation(len(x))]",
}
#: Of encrypted integers one at a time.
TABLE = "x.lookup(table) for 8 or 16 bits, table[v] the value for v, or take real numbers: sudare.context"


def remedy(name: str, operands: Sequence[Any]) -> str:
    """What to write in place of a function of operands, on an interval that holds them."""
    return written(REALS[name], operands, name)


def written(text: str, operands: Sequence[Any], name: str = "") -> str:
    """A text with an interval that holds operands, or the sums of several."""
    bounds = [bound for x in operands if (bound := _bound_of(x)) is not None]
    high = sum(bounds) or 1.0
    # Three digits, rounded up.
    step = 10.0 ** (math.floor(math.log10(high)) - 2)
    high = math.ceil(high / step * (1 - 1e-12)) * step
    return text.format(low=f"{-high:g}", high=f"{high:g}", tenth=f"{high / 10:g}", name=name)


def _bound_of(x: Any) -> float | None:
    if hasattr(type(x), "_bound"):
        known: float | None = x._bound
        return known
    values = np.asarray(x, dtype=object).ravel()
    numbers = [abs(float(v)) for v in values if isinstance(v, (int, float, np.number))]
    return max(numbers, default=None) if len(numbers) == len(values) else None


def _of_one(name: str) -> bool:
    """Whether it is a function of each element alone, with real values."""
    function = getattr(np, name, None)
    return isinstance(function, np.ufunc) and function.nin == function.nout == 1 and "d->d" in function.types


def unsupported(name: str, operands: Sequence[Any] = (), method: str = "__call__") -> UnsupportedError:
    """The refusal of a function of encrypted matrices by its name, with what to write."""
    if method != "__call__":
        return _refusal(f"{name}.{method}", "matrices", REALS, AFTER.replace("{name}", f"{name}.{method}"))
    other = AFTER
    if _of_one(name):
        with np.errstate(all="ignore"):
            everywhere = bool(np.isfinite(getattr(np, name)(np.linspace(-1, 1, 8))).all())
        ends = "({low}, {high})" if everywhere else "({tenth}, {high})"
        other = f"x.apply(numpy.{name}, {ends}, degree=7)"
    return _refusal(name, "matrices", REALS, written(other, operands, name), operands)


def unsupported_integers(
    name: str, operands: Sequence[Any] = (), method: str = "__call__"
) -> UnsupportedError:
    """The refusal of a function of encrypted integers by its name, with what to write."""
    if method != "__call__":
        return _refusal(f"{name}.{method}", "integers", INTEGERS, AFTER.replace("{name}", f"{name}.{method}"))
    return _refusal(name, "integers", INTEGERS, TABLE if _of_one(name) else AFTER)


def _refusal(
    name: str, kind: str, remedies: Mapping[str, str], other: str, operands: Sequence[Any] = ()
) -> UnsupportedError:
    text = written(remedies.get(name, other), operands, name)
    return UnsupportedError(f"numpy.{name} does not work on encrypted {kind}; write {text}")
