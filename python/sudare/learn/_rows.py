"""Plans of fits, their owners, and what travels between these and a server: rows and answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _core
from .._array import Floats
from .._errors import FormatError, InputError, PlanError, ShapeError, UnsupportedError
from .._files import Source, Travels, kind
from .._keys import SecretHolder
from .._matrix import Encrypted
from .._moments import Moments
from .._moments import table as statistics
from .._plan import Plan as TablePlan
from .._release import Release
from .._values import array
from ._base import Estimator, labels, names, numbers, table
from ._sums import Groups, of_masked, of_one_hot

if TYPE_CHECKING:
    from .._session import Client as TableClient
    from .._session import Server

#: What a file of a plan says that it is.
KIND = "learning"
#: What the column of a target is called; of several each has its number.
TARGET = "(target)"

E = TypeVar("E", bound=Estimator)


def target_names(count: int, vector: bool) -> list[str]:
    """The names of the columns of targets."""
    return [TARGET] if vector else [f"(target {t})" for t in range(count)]


class Plan(Travels):
    """What owner and server of a fit agree on; nothing in it is secret. An estimator's `plan` makes it.

    The server gets tables: the rows beside their targets; beside ones and zeros for each class; or, for
    estimators that need the covariance of each class, a table for each, all rows of other classes zero. Each
    has as many rows, so that nothing shows how many are of which class.
    """

    def __init__(
        self, table: TablePlan, targets: int, vector: bool, classes: tuple[Any, ...], common: bool
    ) -> None:
        self._table, self._targets, self._vector = table, targets, vector
        self._classes, self._common = classes, common

    @property
    def table(self) -> TablePlan:
        """The plan of a table's statistics: for `sudare.Server.from_bytes`, `sudare serve` and others."""
        return self._table

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        (spec,) = self._table.inputs.values()
        rows, columns = spec.shape
        assert rows is not None
        return rows, columns - self._targets - (len(self._classes) if self._common else 1) * self._classified

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels of a classification; empty for another plan."""
        return self._classes

    @property
    def tables(self) -> int:
        """Tables that are encrypted for a fit."""
        return 1 if self._common or not self._classified else len(self._classes)

    @property
    def _classified(self) -> bool:
        return bool(self._classes)

    def require(self, estimator: Any) -> None:
        """Refused is an estimator that a fit by this plan has not the moments for: raises `PlanError`."""
        name = type(estimator).__name__
        has = "classifier" if self._classified else "regressor" if self._targets else "transformer"
        if estimator._kind not in (has, "transformer"):
            raise PlanError(
                f"this is the plan of a {has}, and {name} is a {estimator._kind}; see {name}.plan"
            )
        if self._common and self._classified and not estimator._common:
            raise PlanError(
                f"{name} needs the covariance of each class, and this plan has one for all; make the plan by "
                f"{name}().plan, which serves other classifiers too"
            )

    def to_json(self) -> str:
        """The plan as JSON."""
        says = {
            "sudare": KIND,
            "targets": self._targets if not self._vector else None,
            "classes": list(self._classes),
            "common": self._common,
            "table": json.loads(self._table.to_json()),
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
        wanted = {"sudare", "targets", "classes", "common", "table"}
        if not isinstance(given, dict) or set(given) != wanted or given["sudare"] != KIND:
            raise FormatError("this is no plan of a fit; copy it again")
        targets, classes, common = given["targets"], given["classes"], given["common"]
        if not isinstance(classes, list) or type(common) is not bool:
            raise FormatError(
                "a plan of a fit says its classes, and whether they have a covariance in common"
            )
        if targets is not None and (type(targets) is not int or not 0 <= targets < 2**12):
            raise FormatError("a plan of a fit says how many targets there are")
        inner = TablePlan.from_json(json.dumps(given["table"]))
        if not inner._statistics:
            raise FormatError("the plan inside is not one of a table's statistics")
        found = cls(
            inner,
            1 if targets is None else targets,
            targets is None,
            _classes(classes) if classes else (),
            common,
        )
        if found.shape[1] < 1 or (classes and found._targets):
            raise FormatError("the plan's table has not the columns that the plan says")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __str__(self) -> str:
        rows, features = self.shape
        what = (
            f"classes {', '.join(map(str, self._classes))}" if self._classes else f"{self._targets} targets"
        )
        return f"a fit of {rows} rows of {features} features, {what}, by {self.tables} tables\n{self._table}"

    def __repr__(self) -> str:
        return f"<sudare plan of a fit, {self._table.hash}>"

    def _laid_out(self, X: Any, y: Any) -> list[Floats]:
        """The tables that are encrypted."""
        rows = table(X)
        if rows.shape != self.shape:
            raise ShapeError(f"the plan has {self.shape} rows and features, not {rows.shape}")
        if not self._classified:
            if not self._targets:
                return [rows]
            targets = numbers(y, len(rows), several=not self._vector)
            if targets.shape[1] != self._targets:
                raise ShapeError(f"the plan has {self._targets} targets, not {targets.shape[1]}")
            return [np.hstack([rows, targets])]
        found = labels(y, len(rows))
        masks = [(found == label).astype(np.float64) for label in self._classes]
        if not np.isin(found, self._classes).all():
            raise InputError(f"a label of y is none of the planned classes {list(self._classes)}")
        for label, mask in zip(self._classes, masks, strict=True):
            if not mask.any():
                raise InputError(f"no row has the label {label!r}; plan without that class")
        if self._common:
            return [np.column_stack([rows, *masks])]
        return [np.column_stack([rows * mask[:, None], mask]) for mask in masks]

    def _read(self, found: list[Moments], features: Sequence[Any] | None) -> Moments | Groups:
        """What the decrypted statistics of the tables say: moments, or those of each class."""
        columns = [str(j) for j in range(self.shape[1])] if features is None else list(features)
        if not self._classified:
            return found[0].named(
                [*columns, *target_names(self._targets, self._vector)][: len(found[0].mean)]
            )
        labels = list(self._classes)
        groups = (
            of_one_hot(found[0], labels)
            if self._common
            else dict(zip(labels, map(of_masked, found), strict=True))
        )
        return {label: group.named(columns) for label, group in groups.items()}


def _classes(given: Sequence[Any]) -> tuple[Any, ...]:
    """Labels in their order: whole numbers, text or truth values, all of one type."""
    found = [x.item() if isinstance(x, np.generic) else x for x in given]
    if len(set(map(type, found))) != 1 or not isinstance(found[0], (int, float, str)):
        raise InputError("classes are whole numbers or text, two or more, all of one type")
    if len(set(found)) != len(found) or len(found) < 2:
        raise InputError(f"classes are two or more, each of them once, not {found}")
    return tuple(sorted(found))


def planned(
    shape: tuple[int, int],
    max_abs: Any,
    target_max_abs: Any,
    classes: Sequence[Any] | None,
    common: bool,
    security: int,
    release: Release | None,
) -> Plan:
    """The plan of a fit; see `FromMoments.plan`."""
    if len(shape) != 2:
        raise ShapeError(f"a table has rows and features, not the shape {tuple(shape)}")
    rows, features = shape
    bounds = array(max_abs)
    if bounds.ndim > 1 or (bounds.ndim == 1 and bounds.size != features):
        raise ShapeError(f"max_abs is one number or {features}, not an array of shape {bounds.shape}")
    columns = [*np.broadcast_to(bounds, (features,)).tolist()]
    targets = (
        np.ndim(target_max_abs),
        np.atleast_1d([] if target_max_abs is None else target_max_abs).tolist(),
    )
    known = () if classes is None else _classes(list(classes))
    columns += targets[1] + [1.0] * ((len(known) if common else 1) if known else 0)
    tables = 1 if common or not known else len(known)
    # Each table is a result that is shown.
    shown = None if release is None else Release(release.count * tables, release.security)
    inner = statistics((rows, len(columns)), max_abs=columns, security=security, release=shown)
    return Plan(inner, len(targets[1]), bool(targets[1]) and targets[0] == 0, known, common)


class _Tables(Travels):
    """Encrypted tables of a plan."""

    def __init__(self, plan: Plan, tables: Sequence[Encrypted]) -> None:
        self._plan, self._tables = plan, tuple(tables)

    @property
    def plan(self) -> Plan:
        """The plan of the fit."""
        return self._plan

    @property
    def tables(self) -> tuple[Encrypted, ...]:
        """The tables, which are those of `plan.table`."""
        return self._tables

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(x.nbytes for x in self._tables)

    def to_bytes(self) -> bytes:
        """What travels: one container after another."""
        return b"".join(x.to_bytes() for x in self._tables)

    def _saved(self) -> bytes:
        return self.to_bytes()

    @classmethod
    def _parts(cls, plan: Plan, data: Source) -> list[Encrypted]:
        rest = memoryview(_all(data))
        found: list[Encrypted] = []
        for _ in range(plan.tables):
            size = kind(bytes(rest)).nbytes
            found.append(Encrypted.from_bytes(plan.table, bytes(rest[:size])))
            rest = rest[size:]
        if len(rest):
            raise FormatError(
                f"there are {len(rest)} bytes more than {plan.tables} tables have; copy it again"
            )
        return found


def _all(data: Source) -> bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if hasattr(data, "read"):
        return bytes(data.read())
    with open(data, "rb") as file:
        return file.read()


class Rows(_Tables):
    """Encrypted rows with their targets: what `learn.Client.encrypt` gives and estimators fit on."""

    @classmethod
    def from_bytes(cls, plan: Plan, data: Source, server: Server | None = None) -> Rows:
        """Read rows: `data` is bytes-like, a path or an open binary file. `server` computes with them.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for the rows of another plan.
        """
        found = cls(plan, cls._parts(plan, data))
        return found if server is None else found.bind(server)

    def bind(self, server: Server) -> Rows:
        """The same rows, computed with by this server."""
        return Rows(self._plan, [server.bind(x) for x in self._tables])

    def moments(self) -> Answer:
        """The encrypted moments, which serve every estimator of the plan's kind.

        Raises `UnsupportedError` for rows that are bound to no server, `KeyMismatchError` for those of
        another key.
        """
        return Answer(self._plan, [x._place._server.moments(x) for x in self._tables])

    def __repr__(self) -> str:
        return f"<sudare rows of a fit, {self._plan.shape}, {self.nbytes / 1e6:.1f} MB>"


class Answer(_Tables):
    """Encrypted moments: what a server makes of rows, and their owner decrypts."""

    @classmethod
    def from_bytes(cls, plan: Plan, data: Source) -> Answer:
        """Read an answer: `data` is bytes-like, a path or an open binary file.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for the answer of another plan.
        """
        return cls(plan, cls._parts(plan, data))

    def __repr__(self) -> str:
        return f"<sudare moments of a fit, encrypted, {self.nbytes / 1e6:.1f} MB>"


class Client(SecretHolder[_core.Client]):
    """The owner of the rows and of the secret key: `sudare.Client(plan)` makes one of a plan of a fit.

    Its server has evaluation keys and learns the plan: the numbers of rows, features and classes, bounds. The
    owner sees moments, and finishes fits from them.
    """

    _again = "learn.Client.from_secret_bytes(plan, data)"

    def __init__(self, plan: Plan, *, threads: int = 0) -> None:
        from .._session import Client as TableClient

        self._setup(plan, TableClient(plan.table, threads=threads))

    def _setup(self, plan: Plan, client: TableClient) -> None:
        self._plan, self._client, self._core = plan, client, client._core
        self._features: list[str] | None = None

    @classmethod
    def from_secret_bytes(cls, plan: Plan, data: Source, *, threads: int = 0) -> Client:
        """A client from the secret key that `secret_bytes` or `save` gave.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for a key of other parameters.
        """
        from .._session import Client as TableClient

        client = cls.__new__(cls)
        client._setup(plan, TableClient.from_secret_bytes(plan.table, data, threads=threads))
        return client

    @property
    def plan(self) -> Plan:
        """The plan of the fit."""
        return self._plan

    @property
    def releases_left(self) -> int:
        """Fits that may still be shown under this key, of those that the plan declares."""
        return self._client.releases_left // self._plan.tables

    def server(self) -> Server:
        """The server for this client's rows, made once: evaluation keys only."""
        return self._client.server()

    def encrypt(self, X: Any, y: Any = None) -> Rows:
        """Encrypt rows and their targets, numbers or labels as planned. A frame's column names stay here.

        Raises `ShapeError` for other shapes than the plan's, `InputError` for values that are not finite or
        over their bounds and for labels that are not planned.
        """
        tables = self._plan._laid_out(X, y)
        self._features = names(X) or self._features
        return Rows(self._plan, [self._client.encrypt(part) for part in tables])

    def decrypt(self, x: Any, *, release: bool = False, private: bool = False) -> Any:
        """What was fitted on encrypted rows, as an estimator that is fitted; the moments of an answer.

        `release` and `private` are those of `sudare.Client.decrypt`: moments that others will see are
        released with noise, and so is every coefficient that follows from them.

        Raises `KeyMismatchError` for what another key or plan has, `ReleaseError` as `sudare.Client.decrypt`,
        `UnsupportedError` for what is neither.
        """
        if isinstance(x, Estimator):
            answer = getattr(x, "answer_", None)
            if answer is None:
                raise UnsupportedError(f"this {type(x).__name__} was not fitted on encrypted rows")
            fitted: Any = x._blank()
            return fitted.fit(self.decrypt(answer, release=release, private=private))
        if not isinstance(x, Answer):
            raise UnsupportedError(f"a fit or its answer is decrypted here, not {type(x).__name__}")
        parts = [self._client.decrypt(part, release=release, private=private) for part in x.tables]
        return self._plan._read(parts, self._features)

    def __repr__(self) -> str:
        return "<sudare client of fits, secret key hidden>"
