"""Tables of pandas and polars: numbers in, numbers out, and the names of rows and columns in what is refused.

Neither library is loaded: a table is known by what it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError, ShapeError, UnsupportedError


def is_frame(values: Any) -> bool:
    """Whether it is a table with named columns."""
    return all(hasattr(values, has) for has in ("columns", "__array__", "__getitem__"))


def is_series(values: Any) -> bool:
    """Whether it is one column of a table."""
    return all(hasattr(values, has) for has in ("__array__", "to_frame", "dtype"))


def names(values: Any) -> list[str] | None:
    """The names of a frame's columns, if all are text."""
    columns = list(values.columns) if is_frame(values) else []
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def require_names(known: Sequence[str] | None, values: Any) -> None:
    """Refuses a frame with other columns than those known, or with these in another order.

    Raises `ShapeError`, in the words that scikit-learn has for it.
    """
    given = names(values)
    if known is None or given is None or list(known) == given:
        return
    lines = ["The feature names should match those that were passed during fit."]
    unseen, missing = sorted(set(given) - set(known)), sorted(set(known) - set(given))
    if unseen:
        lines += ["Feature names unseen at fit time:", *_some(unseen)]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:", *_some(missing)]
    if not unseen and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    raise ShapeError("\n".join(lines) + "\n")


def _some(names: list[str]) -> list[str]:
    return [f"- {name}" for name in names[:5]] + ["- ..."] * (len(names) > 5)


def place(values: Any, at: tuple[int, ...]) -> str:
    """An element of what was given, by row and column if these have names."""
    if is_frame(values) and len(at) == 2:
        return f"row {_row(values, at[0])} of column {values.columns[at[1]]!r}"
    if hasattr(values, "index") and hasattr(values, "dtype") and len(at) == 1:
        return f"row {_row(values, at[0])}"
    return f"the element at {at}"


def _row(values: Any, at: int) -> Any:
    return values.index[at] if hasattr(values, "index") else at


def framed(found: Any, like: Any) -> Any:
    """An array as a table with the columns and rows of another, or as one column or one row of it.

    Raises `ShapeError` for an array that has neither, `UnsupportedError` for what is no table.
    """
    if not is_frame(like):
        raise UnsupportedError(f"like= is a data frame of pandas or polars, not {type(like).__name__}")
    rows, columns, pandas = len(like), len(like.columns), hasattr(like, "iloc")
    shape = np.shape(found)
    if shape == (rows,):
        return type(like.iloc[:, 0])(found, index=like.index) if pandas else type(like.to_series(0))(found)
    if shape == (columns,):
        found, shape = found[None], (1, columns)
    if len(shape) != 2 or shape[1] != columns:
        raise ShapeError(
            f"a result of shape {shape} has neither the {rows} rows nor the {columns} columns of this table; "
            "give a table with its columns, or leave like= out"
        )
    if pandas:
        return type(like)(found, columns=like.columns, index=like.index if shape[0] == rows else None)
    return type(like)(found, schema=list(like.columns))


def numbers_of(values: Any) -> NDArray[Any]:
    """A table of pandas or polars, column by column: numbers and booleans, all of them there."""
    columns = []
    for at, name in enumerate(values.columns):
        # By its place: pandas lets two columns have one name.
        found = np.asarray(values.iloc[:, at] if hasattr(values, "iloc") else values[name])
        if found.dtype.kind == "O" and not any(isinstance(x, (str, bytes)) for x in found):
            # Nullable ones, which may be all there.
            missing = np.array([_missing(x) for x in found.tolist()])
            found = found if missing.any() else np.array(found.tolist())
            _complain(values, name, ~missing, found)
        if found.dtype.kind not in "biuf":
            text = found.dtype.kind in "OUST"
            held, more = ("text", ", or by sudare.bits' encrypt_text") if text else (str(found.dtype), "")
            raise UnsupportedError(
                f"column {name!r} holds {held}, and numbers are encrypted; leave it out, or make numbers "
                f"of it by pandas.get_dummies(frame) or as days since a date{more}"
            )
        if found.dtype.kind == "f":
            _complain(values, name, np.isfinite(found), found)
        columns.append(found)
    return np.stack(columns, axis=1) if columns else np.empty((len(values), 0))


def _missing(x: Any) -> bool:
    return x is None or type(x).__name__ in ("NAType", "NaTType") or bool(x != x)


def _complain(values: Any, name: Any, there: NDArray[np.bool_], found: NDArray[Any]) -> None:
    """Refuses a column in which not all values are there."""
    if there.all():
        return
    at = int(np.argmin(there))
    what = f"is {found[at]}" if found.dtype.kind == "f" and np.isinf(found[at]) else "has no value"
    raise InputError(
        f"row {_row(values, at)} of column {name!r} {what}; fill it, frame.fillna(0), or leave "
        "the row out: frame.dropna()"
    )
