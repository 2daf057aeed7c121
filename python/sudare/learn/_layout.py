"""Plans of fits: what the columns are, and the product that has all moments of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._array import Floats
from .._errors import FormatError, InputError, PlanError, ShapeError
from .._files import Travels
from .._frames import names, place
from .._moments import Moments
from .._plan import Plan as ProductPlan
from .._plan import plan
from .._release import Release
from .._spec import is_data, spec
from .._values import array, count
from ._base import labels, numbers, table
from ._sums import Groups, of_one_hot, of_sums

#: What a file of a plan says that it is.
KIND = "learning"
#: The inputs of the product.
ROWS, MASKED = "rows", "masked"
#: Digits of sums over the rows that are tried, in units of bounds.
DIGITS = (10, 9, 8, 7, 6, 5, 4)
#: What the column of a target is called; of several each has its number.
TARGET = "(target)"


def target_names(targets: int, vector: bool) -> list[str]:
    """The names of the columns of targets."""
    return [TARGET] if vector else [f"(target {t})" for t in range(targets)]


class Plan(Travels):
    """What owner and server of a fit agree on; nothing in it is secret. An estimator's `plan` makes it.

    The server multiplies: with A the rows over their bounds, their targets (numbers, or ones and zeros for
    each class) and a column of ones, AᵀA has all sums of two columns. For estimators that need the covariance
    of each class it multiplies A, once for each with all other rows zero, and A. Shapes are those of all
    rows, so that nothing shows how many are of which class.
    """

    def __init__(
        self,
        product: ProductPlan,
        max_abs: tuple[float, ...],
        targets: tuple[float, ...],
        vector: bool,
        classes: tuple[Any, ...],
        common: bool,
    ) -> None:
        self._product, self._max_abs = product, max_abs
        self._targets, self._vector = targets, vector
        self._classes, self._common = classes, common
        # Of the frame that it was made for, and not in its text.
        self._features: list[str] | None = None

    @property
    def product(self) -> ProductPlan:
        """The plan of the product: for `sudare.Server.from_bytes`, `sudare serve` and others."""
        return self._product

    @property
    def error(self) -> float:
        """The promised error of each sum of products of two columns, which are divided by their bounds.

        What it does to a coefficient depends on the data: `coef_error_` says it after decryption.
        """
        return self._product.error

    @property
    def seconds(self) -> float | None:
        """Seconds of the server, as `sudare.Plan.seconds`."""
        return self._product.seconds

    @property
    def memory(self) -> int:
        """Bytes of memory of the server, as `sudare.Plan.memory`."""
        return self._product.memory

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        rows = self._product.inputs[ROWS].shape[0]
        assert rows is not None
        return rows, len(self._max_abs)

    @property
    def max_abs(self) -> Floats:
        """The bound on the absolute values of each feature."""
        return np.array(self._max_abs)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels of a classification; empty for another plan."""
        return self._classes

    @property
    def _each(self) -> bool:
        """Whether classes have a covariance each."""
        return bool(self._classes) and not self._common

    def require(self, estimator: Any) -> None:
        """Raises `PlanError` for an estimator whose moments a fit by this plan does not have."""
        name = type(estimator).__name__
        has = "classifier" if self._classes else "regressor" if self._targets else "transformer"
        if estimator._kind not in (has, "transformer"):
            raise PlanError(f"this is the plan of a {has}, and {name} is a {estimator._kind}: {name}().plan")
        if self._common and self._classes and not estimator._common:
            raise PlanError(
                f"{name} needs the covariance of each class, and this plan has one for all; make the plan by "
                f"{name}().plan, which serves other classifiers too"
            )

    def to_json(self) -> str:
        """The plan as JSON."""
        says = {
            "sudare": KIND,
            "max_abs": list(self._max_abs),
            "targets": list(self._targets),
            "vector": self._vector,
            "classes": list(self._classes),
            "common": self._common,
            "product": json.loads(self._product.to_json()),
        }
        return json.dumps(says, indent=1)

    def _saved(self) -> bytes:
        return self.to_json().encode()

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan; everything in it is worked out and checked again.

        Raises `FormatError` for text that is no such plan, and as `sudare.Plan.from_json`.
        """
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            given = None
        wanted = {"sudare", "max_abs", "targets", "vector", "classes", "common", "product"}
        if not isinstance(given, dict) or set(given) != wanted or given["sudare"] != KIND:
            raise FormatError("this is no plan of a fit; copy it again")
        lists = [given[name] for name in ("max_abs", "targets", "classes")]
        if not all(isinstance(x, list) for x in lists) or not all(
            type(given[name]) is bool for name in ("vector", "common")
        ):
            raise FormatError("a plan of a fit says bounds, targets and classes, and what these are")
        max_abs, targets, classes = lists
        if not max_abs or not all(type(x) in (int, float) and 0 < x < 1e300 for x in max_abs + targets):
            raise FormatError("bounds of a plan of a fit are numbers above zero")
        try:
            known = _classes(classes) if classes else ()
        except InputError as error:
            raise FormatError(str(error)) from None
        found = cls(
            ProductPlan.from_json(json.dumps(given["product"])),
            tuple(map(float, max_abs)),
            tuple(map(float, targets)),
            given["vector"],
            known,
            given["common"],
        )
        if (classes and targets) or (given["vector"] and len(targets) != 1) or not found._fits():
            raise FormatError("the plan's product is not that of the columns that it says")
        return found

    def _fits(self) -> bool:
        """Whether the product has the shapes that the columns have."""
        inputs = {name: spec.shape for name, spec in self._product.inputs.items()}
        if ROWS not in inputs or inputs[ROWS][0] is None:
            return False
        wanted = _shapes(self.shape, self._targets, self._classes, self._common)
        # Elements of the result: of the product of the first input, or its transpose, and the second.
        left = wanted.get(MASKED, wanted[ROWS][::-1])[0]
        return inputs == wanted and self._product.errors.shape == (left, wanted[ROWS][1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __str__(self) -> str:
        rows, features = self.shape
        what = f"{len(self._targets)} targets"
        if self._classes:
            what = f"classes {', '.join(map(str, self._classes))}"
        return (
            f"a fit of {rows} rows of {features} features, {what}; errors are of sums of products of columns "
            f"over their bounds, and coef_error_ says after decryption what they do\n{self._product}"
        )

    def __repr__(self) -> str:
        return f"<sudare plan of a fit, {self._product.hash}>"

    def _matrices(self, X: Any, y: Any) -> dict[str, Floats]:
        """The matrices that are encrypted."""
        rows = table(X)
        if rows.shape != self.shape:
            raise ShapeError(f"the plan has {self.shape} rows and features, not {rows.shape}")
        over = np.argwhere(np.abs(rows) > self.max_abs)
        if len(over):
            where = place(X, tuple(over[0].tolist()))
            raise InputError(f"{where} is over its bound; plan with a larger max_abs")
        scaled, one = rows / self.max_abs, np.ones(len(rows))
        if not self._classes:
            columns = [scaled]
            if self._targets:
                targets = numbers(y, len(rows), several=not self._vector)
                if targets.shape[1] != len(self._targets):
                    raise ShapeError(f"the plan has {len(self._targets)} targets, not {targets.shape[1]}")
                if (np.abs(targets) > self._targets).any():
                    raise InputError("a target is over its bound; plan with a larger target_max_abs")
                columns.append(targets / np.array(self._targets))
            return {ROWS: np.column_stack([*columns, one])}
        found = labels(y, len(rows))
        masks = [(found == label).astype(np.float64) for label in self._classes]
        if not np.sum(masks, axis=0).all():
            raise InputError(f"a label of y is none of the planned classes {list(self._classes)}")
        for label, mask in zip(self._classes, masks, strict=True):
            if not mask.any():
                raise InputError(f"no row has the label {label!r}; plan without that class")
        if self._common:
            return {ROWS: np.column_stack([scaled, *masks, one])}
        whole = np.column_stack([scaled, one])
        return {MASKED: np.hstack([whole * mask[:, None] for mask in masks]).T, ROWS: whole}

    def _read(self, sums: Floats, released: bool, features: Sequence[Any] | None) -> Moments | Groups:
        """What the decrypted sums say: moments, or those of each class."""
        names = [str(j) for j in range(self.shape[1])] if features is None else list(features)
        errors = self._product._core.errors(released)[0]
        ones = (1.0,) * len(self._classes) if self._common else ()
        bounds = np.array([*self._max_abs, *self._targets, *ones])
        if not self._each:
            found = of_sums(sums, errors, bounds, self.shape[0])
            if not self._classes:
                return found.named([*names, *target_names(len(self._targets), self._vector)])
            groups = of_one_hot(found, list(self._classes))
        else:
            parts = zip(np.split(sums, len(self._classes)), np.split(errors, len(self._classes)), strict=True)
            each = [of_sums(part, error, bounds, round(float(part[-1, -1]))) for part, error in parts]
            groups = dict(zip(self._classes, each, strict=True))
        return {label: group.named(names) for label, group in groups.items()}


def _classes(given: Sequence[Any]) -> tuple[Any, ...]:
    """Labels in their order: whole numbers, text or truth values, all of one type."""
    found = [x.item() if isinstance(x, np.generic) else x for x in given]
    if len(set(map(type, found))) != 1 or not isinstance(found[0], (int, float, str)):
        raise InputError("classes are whole numbers or text, two or more, all of one type")
    if len(set(found)) != len(found) or len(found) < 2:
        raise InputError(f"classes are two or more, each of them once, not {found}")
    return tuple(sorted(found))


def _shapes(
    shape: tuple[int, int], targets: Sequence[float], classes: Sequence[Any], common: bool
) -> dict[str, tuple[int, int]]:
    """The shapes of the matrices that are encrypted."""
    rows, features = shape
    if classes and not common:
        return {MASKED: (len(classes) * (features + 1), rows), ROWS: (rows, features + 1)}
    return {ROWS: (rows, features + len(targets) + len(classes) + 1)}


def _bounds(given: Any, name: str, columns: int | None) -> tuple[float, ...]:
    """Bounds of columns, one for all or one for each."""
    found = array(given)
    if found.dtype.kind not in "iuf" or not (np.isfinite(found) & (found > 0)).all():
        raise InputError(f"{name} is a number above zero or one for each column, not {given!r}")
    if found.ndim > 1 or (columns is not None and found.ndim == 1 and found.size != columns):
        raise ShapeError(f"{name} is one number or {columns}, not an array of shape {found.shape}")
    spread = np.broadcast_to(found, (columns,)) if columns is not None else np.atleast_1d(found)
    return tuple(map(float, spread.tolist()))


def planned(
    shape: Any,
    max_abs: Any,
    target_max_abs: Any,
    classes: Sequence[Any] | None,
    common: bool,
    security: int,
    release: Release | None,
) -> Plan:
    """The plan of a fit; see `FromMoments.plan`."""
    named = names(shape)
    shape = array(shape).shape if is_data(shape) else shape
    if len(shape) != 2:
        raise ShapeError(f"a table has rows and features, not the shape {tuple(shape)}")
    rows, features = (count(side, "a side of the table") for side in shape)
    if rows < 2 or features < 1:
        raise ShapeError(f"a fit takes two rows or more of a feature or more, not {rows} of {features}")
    bounds = _bounds(max_abs, "max_abs", features)
    targets = () if target_max_abs is None else _bounds(target_max_abs, "target_max_abs", None)
    known = () if classes is None else _classes(list(classes))
    inputs = {name: spec(sides) for name, sides in _shapes((rows, features), targets, known, common).items()}
    for digits in DIGITS:
        try:
            product = plan(
                of_masked if MASKED in inputs else gram,
                error=rows * 10.0**-digits,
                security=security,
                release=release,
                **inputs,  # type: ignore[arg-type]
            )
        except PlanError:
            # Released sums have noise that takes digits.
            if release is None or digits == DIGITS[-1]:
                raise
        else:
            break
    made = Plan(product, bounds, targets, np.ndim(target_max_abs) == 0 and bool(targets), known, common)
    made._features = named
    return made


def gram(rows: Any) -> Any:
    return rows.T @ rows


def of_masked(masked: Any, rows: Any) -> Any:
    return masked @ rows
