"""Plans: what is computed, by which method, under which parameters and keys."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _core, _html, _plot
from ._array import Floats
from ._errors import PlanError, UnsupportedError
from ._files import Travels
from ._plot import Picture
from ._progress import clock, forecast
from ._release import Release, declared
from ._spec import Spec, is_data, spec
from ._trace import Traced, traced
from ._values import count, real, security_bits

if TYPE_CHECKING:
    from ._session import Client, Server

__all__ = ["Plan", "plan"]


class Plan(Travels):
    """Everything that a client and a server have to agree on; nothing in it is secret.

    Made by `plan` for products and expressions, of real matrices or exactly of integers, and by `table` for
    statistics. One client and one server serve all of them.

    `print(plan)` shows the scheme, its parameters, the method, keys, sizes, time and what else was
    considered. A plan travels as JSON: `save` and `sudare.load`, `to_json` and `from_json`. It pickles for
    your own processes.

    >>> plan = sd.plan(lambda A, B: A @ B, A=sd.spec((2, 3)), B=sd.spec((3, 2)), error=1e-4)
    >>> plan.error <= 1e-4, plan.summary["security_bits"] >= 128
    (True, True)
    >>> sd.Plan.from_json(plan.to_json()) == plan
    True
    """

    def __init__(self, core: _core.Plan, traced: Traced | None = None) -> None:
        self._core = core
        # What is known of the function where it was planned.
        self._traced = traced
        self._unused = traced.unused if traced else frozenset[str]()
        self._called = traced.called if traced else {}
        # What would make its keys smaller, as far as it was looked for.
        self._advice = ""

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan; everything in it is worked out and checked again."""
        return cls(_core.Plan.from_json(text))

    def to_json(self) -> str:
        """The plan as JSON."""
        return self._core.to_json()

    def _saved(self) -> bytes:
        return self.to_json().encode()

    @cached_property
    def _file(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.to_json())
        return loaded

    def client(self, *, threads: int = 0) -> Client:
        """A client with a new secret key: `sudare.Client(plan)`."""
        from ._session import Client

        return Client(self, threads=threads)

    def keyless(self, *, threads: int = 0) -> Server:
        """A server without any key: a plan of integers takes none."""
        from ._session import Server

        return Server(_core.Server.keyless(self._core, threads), self)

    @property
    def hash(self) -> str:
        """Its name, on everything that belongs to it."""
        return self._core.hash_hex()

    @property
    def summary(self) -> dict[str, Any]:
        """The figures of the table: method, ring, primes, modulus, security, keys, sizes, time, error.

        The ring degree N is `degree`; `q_bits` and `p_bits` are bits of the data primes and the special ones.
        """
        params = self._core.params
        ring = {"degree": params.degree, "q_bits": params.q_bits, "p_bits": params.p_bits}
        return {**self._file["summary"], **ring}

    @property
    def seconds(self) -> float | None:
        """Seconds of the server for one run, as they were predicted; none without an estimate."""
        return float(self._file["summary"]["seconds"]) or None

    @property
    def memory(self) -> int:
        """Bytes of memory that a server takes while it runs, as they were predicted; a client is apart."""
        return int(self._file["summary"]["memory"])

    @property
    def _key_bytes(self) -> int:
        """Bytes of the server's keys, in memory."""
        return sum(int(key["bytes"]) for key in self._file["summary"]["keys"])

    def _forecast_keys(self) -> None:
        """Warns of keys that take a gigabyte."""
        forecast("keys of this plan", 0.0, self._key_bytes, self._advice)

    @property
    def considered(self) -> list[dict[str, Any]]:
        """The methods that were priced, and why each was taken or not."""
        return list(self._file["considered"])

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self._file["summary"]["method"])

    @property
    def error(self) -> float:
        """The largest error of a result element that is promised; released, if the plan has releases.

        Of a table it is in units of the columns' bounds.
        """
        return float(self._file["summary"]["predicted_error"])

    @property
    def release(self) -> Release | None:
        """What may be shown to others under one key."""
        found = self._file["goal"].get("release")
        return None if found is None else Release(found["releases"], found["security_bits"])

    @property
    def batch(self) -> int:
        """Independent sets of inputs that one run takes."""
        return int(self._file["goal"]["batch"])

    @property
    def inputs(self) -> dict[str, Spec]:
        """The inputs by name; vectors as columns."""
        return {
            entry["name"]: Spec(
                (None if entry.get("block") else entry["rows"], entry["cols"]),
                entry.get("integers", entry["max_abs"]),
                entry.get("plain", False),
                "integers" in entry,
            )
            for entry in self._expression["inputs"]
        }

    @property
    def block_rows(self) -> int:
        """Rows of a block, where inputs have any number of them; they are filled up to whole blocks.

        Raises `UnsupportedError` where the number of rows is planned.
        """
        found = [entry["rows"] for entry in self._expression["inputs"] if entry.get("block")]
        if not found:
            raise UnsupportedError("the number of rows is planned; any number is sudare.spec((None, 30))")
        return int(found[0])

    def _blocks(self, name: str) -> bool:
        """Whether an input has any number of rows."""
        return any(entry["name"] == name and entry.get("block") for entry in self._expression["inputs"])

    @property
    def max_abs(self) -> Floats:
        """The bound on the absolute values of each column of a table; other bounds are in `inputs`.

        Raises `UnsupportedError` for a plan of anything but a table.
        """
        if not self._statistics:
            raise UnsupportedError("only a table has a bound for each column; see plan.inputs")
        return np.array(self._expression["inputs"][0]["columns"])

    @property
    def errors(self) -> Floats:
        """A bound on the error of each element of the result; as it is released, if the plan has releases."""
        errors: Floats = self._core.errors(True)[0]
        return errors

    @property
    def exact(self) -> bool:
        """Whether it computes with integers, exactly."""
        return self._core.exact

    @property
    def on_devices(self) -> bool:
        """Whether `server.to("cuda")` computes it: plans of real matrices, refreshed or not.

        Integers and statistics of tables stay on the processor: `to` refuses their servers.
        """
        return self._core.on_devices

    def _largest(self, value: _core.Encrypted) -> float:
        """The largest integer that a value of the plan may have."""
        largest = self._core.largest_integer
        if value.modulus is not None:
            return value.modulus - 1
        result = value.node == self._expression["output"]
        return largest if result and largest is not None else value.max_abs

    def _by_elements(self, length: int) -> bool:
        """Whether it has products with a plain vector of a length as those of each element."""
        if self._traced is not None:
            return self._traced.by_elements
        # In a file it is whether no matrix product has such a vector, which a function brought along.
        inputs, nodes = self._expression["inputs"], self._expression["nodes"]

        def vector(at: int, rows: int, cols: int) -> bool:
            entry = inputs[nodes[at]["input"]] if nodes[at]["op"] == "input" else {}
            brought = str(entry.get("name", "")).startswith("plain ")
            return brought and (entry["rows"], entry["cols"]) == (rows, cols)

        products = [node["operands"] for node in nodes if node["op"] == "matmul"]
        return not any(vector(x, 1, length) or vector(y, length, 1) for x, y in products)

    @property
    def _statistics(self) -> bool:
        return bool(self._file["program"]["kind"] == "table")

    @property
    def _expression(self) -> dict[str, Any]:
        expression: dict[str, Any] = self._file["goal"]["expression"]
        return expression

    def plot(self) -> Picture:
        """A picture: the expression, levels and errors step by step, time by operation, memory, alternatives.

        A notebook shows it, and `plan.plot().save("plan.svg")` writes it. It is drawn from the plan alone.
        """
        return _plot.of_plan(self)

    def _with_names(self, text: str) -> str:
        """A text in which plain matrices are called what the planned function calls them."""
        for known, called in self._called.items():
            text = text.replace(known, f"plain {called}")
        return text

    def __str__(self) -> str:
        advice = f"\n  bounds       {self._advice}" if self._advice else ""
        return self._with_names(str(self._core)) + advice

    def _repr_html_(self) -> str:
        return self._with_names(_html.plan(self))

    def __repr__(self) -> str:
        return f"<sudare plan {self._core.hash_hex()} {self.method}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self._core.hash_hex())

    def __reduce__(self) -> tuple[Callable[[str], Plan], tuple[str]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return Plan.from_json, (self.to_json(),)


def plan(
    function: Callable[..., Any],
    /,
    *,
    error: float | None = None,
    security: int | Literal["insecure"] = 128,
    batch: int = 1,
    threads: int = 1,
    memory: int | None = None,
    method: str | None = None,
    compact: bool = False,
    release: Release | None = None,
    parties: int | None = None,
    threshold: int | None = None,
    bootstrap: str | None = None,
    modulus: int | None = None,
    **inputs: Any,
) -> Plan:
    """Choose scheme, parameters, method and keys for a function of matrices.

    `function` is called with stand-ins for its inputs, which only record what is done with them. Each
    input is described by a `spec` under its name, or by an array of its shape. What it returns is one matrix,
    or several in a tuple, a dictionary or a dataclass, which are decrypted as such. `error` is the largest
    absolute error of a result element that is wanted, `security` 128, 192 or 256 bits. `batch` independent
    sets of inputs are computed at once. `threads` and `memory` (bytes) are the server's; `method` names a
    method instead of leaving the choice to the planner. With `compact` results take few bytes and
    still have the wanted error, for more time and keys. With a `release`, so many results will be
    shown to others: `error` is then that of a released result, the noise that it takes included.

    With `parties` and a `threshold` so many parties hold the key together, and any `threshold` of them
    decrypt (`sudare.Party`). Each decryption is a `release`, which has to be declared, and `error` is what is
    left with all noise of the parties. Such plans refresh nothing. Those of integers (`dtype=int`) add,
    subtract and scale, and multiply nothing encrypted.

    With `bootstrap="auto"` values may be refreshed where levels end, if that is cheaper than a ring with
    levels for everything: the planner places refreshes by a shortest path over operations and levels, for
    each set, and `print(plan)` tells where they are. The name of a set in place of "auto" takes no other. Say
    with `x.bounded(max_abs)` in the function what you know of its values: bounds grow with every operation.
    A `security` of "insecure" is none at all: the same plan on a small ring, to try it in this process.

    What the function does to `plain` inputs alone (`W.T`, slices, broadcasting) is done in NumPy before
    the server gets them: the plan has the matrix that comes out, as an input named
    with a number, `W (2)`.

    If the inputs are described with `dtype=int`, the result is exact: there is no `error`, and no release but
    that of several parties. Then the function has `+ - * @` with encrypted and plain operands and numbers
    that are integers, `.T` and `.sum(axis)`, and multiplies at most two encrypted values with each other.

    Integers are refreshed too: with `bootstrap="auto"`, or one of the sets "X15" (3 products between
    refreshes) and "X16" (20), the function multiplies as often as it likes, element by element: `x**100`, or
    a loop of products. It is then computed modulo 65537. Results up to 32768 are the integers themselves.
    For larger ones say `modulus=65537`: they come as `% 65537` gives them.

    With `sudare.spec((None, 30))` one plan and its keys serve any number of rows, if the function computes
    each of them by itself. They are computed in blocks, `plan.block_rows` of them at a time, the number that
    takes the least time for each.

    A value that the function computes and its result does not need is left out of the plan. Where the plan
    was made, computing it again gives a value that nothing can be done with; elsewhere it is refused.

    Raises `PlanError` with what the nearest miss would need.

    >>> plan = plan(lambda A, B: A @ B, A=sd.spec((2, 3)), B=sd.spec((3, 2)), error=1e-4)
    >>> plan.error <= 1e-4
    True
    """
    own = {"error": error, "batch": batch, "threads": threads, "memory": memory}
    for name, value in {**own, "parties": parties, "threshold": threshold, "modulus": modulus}.items():
        if isinstance(value, Spec):
            raise PlanError(
                f"{name} is a setting of sudare.plan; call the function's argument something else"
            )
    inputs = {
        name: given if isinstance(given, Spec) or not is_data(given) else spec(given)
        for name, given in inputs.items()
    }
    exact = any(isinstance(given, Spec) and given.integer for given in inputs.values())
    if exact and error is not None:
        raise PlanError("integers are computed exactly; leave the error out")
    if error is None and not exact:
        raise PlanError(
            "say how large an error may be: error=1e-4, for example; integers (dtype=int) need none"
        )
    settings: dict[str, Any] = {
        "error": 0.0 if exact else _finite(error),
        "security": security_bits(security),
        "batch": count(batch, "batch"),
        "threads": threads,
        "memory": None if memory is None else count(memory, "memory"),
        "method": method,
        "compact": bool(compact),
        "release": declared(release),
        "bootstrap": _sets(bootstrap, exact),
        "sharing": _sharing(parties, threshold),
        "modulus": None if modulus is None else count(modulus, "modulus"),
    }

    def of(rows: int, by_elements: bool = False, bound: float | None = None) -> Plan:
        found = traced(function, inputs, rows, by_elements=by_elements, bound=bound)
        return Plan(_core.Plan.make(found.expression, **settings), found)

    def quickest(rows: int) -> Plan:
        first = of(rows)
        if exact or compact or method is not None or not (first._traced and first._traced.vectors):
            return first
        # Where no faster method takes all of it, sums of products of each element take fewer keys.
        try:
            return min(first, of(rows, by_elements=True), key=lambda plan: plan.seconds or math.inf)
        except PlanError:
            return first

    def made(rows: int) -> Plan:
        bound = max((given.max_abs for given in inputs.values() if isinstance(given, Spec)), default=1.0)
        try:
            found = quickest(rows)
        except PlanError as refusal:
            if not exact and (other := _bounded(of, rows, bound)) is not None:
                words = f"{refusal}; or say how large products are: {_kept(bound, other)}"
                raise PlanError(words) from None
            raise
        if not exact and found._key_bytes > LARGE:
            other = _bounded(of, rows, bound)
            if other is not None and other._key_bytes < SAVED * found._key_bytes:
                found._advice = _kept(bound, other)
        return found

    with clock("planning"):
        if not any(isinstance(given, Spec) and given.any_rows for given in inputs.values()):
            return made(1)
        if batch != 1 or release is not None:
            raise PlanError(
                "a plan for any number of rows takes no batch and no releases; give the number of rows for "
                "these"
            )
        return _of_blocks(made)


#: The sets that refresh integers.
INTEGER_SETS = ["X15", "X16"]
#: Bytes of keys from which on bounds are tried that make them smaller, and the part that is worth telling.
LARGE, SAVED = 200e6, 0.85


def _bounded(of: Callable[..., Plan], rows: int, bound: float) -> Plan | None:
    """The plan if all products kept the bound of the inputs, where there is one."""
    try:
        return of(rows, bound=bound)
    except PlanError:
        return None


def _kept(bound: float, other: Plan) -> str:
    """What is to be said of products, and what that would give."""
    size = other._key_bytes / 1e6
    return f"sudare.bounded(x, {bound:g}) after each product, where that is so, makes keys of {size:.0f} MB"


#: Seconds of a block, over which none is larger.
LONGEST = 2.0
#: Rows of a block, and the part of the least time for a row that a smaller block may take more.
BLOCKS, NEAR = [2**k for k in range(3, 15)], 1.1


def _of_blocks(made: Callable[[int], Plan]) -> Plan:
    """The plan whose blocks take the least time for a row; of those that are near it the smallest blocks."""
    plans = [(BLOCKS[0], made(BLOCKS[0]))]
    for rows in BLOCKS[1:]:
        try:
            plans.append((rows, made(rows)))
        except PlanError:
            # No parameters hold more.
            break
        if (plans[-1][1].seconds or 0.0) > LONGEST:
            break

    def each(at: tuple[int, Plan]) -> float:
        return (at[1].seconds or 1.0) / at[0]

    least = min(map(each, plans))
    return next(found for rows, found in plans if each((rows, found)) <= NEAR * least)


def _finite(error: Any) -> float:
    """An error that may be made."""
    found = real(error, "error")
    if not math.isfinite(found):
        raise PlanError(f"error is a finite number above zero, 1e-4 for example, not {found}")
    return found


def _sharing(parties: int | None, threshold: int | None) -> tuple[int, int] | None:
    """How many parties hold the key, and how many of them decrypt."""
    if (parties is None) != (threshold is None):
        raise PlanError(
            "say how many parties hold the key and how many of them decrypt: parties=3, threshold=2"
        )
    if parties is None or threshold is None:
        return None
    return count(parties, "parties"), count(threshold, "threshold")


def _sets(bootstrap: str | None, exact: bool) -> list[str]:
    """The sets that a planner may refresh real numbers or integers by."""
    if bootstrap is None:
        return []
    known = INTEGER_SETS if exact else ["A", "A12", "B", "C"]
    if not isinstance(bootstrap, str):
        names = ", ".join(map(repr, known[:-1])) + f" or {known[-1]!r}"
        raise PlanError(f"bootstrap is 'auto' or the name of a set, {names}, not {bootstrap!r}")
    return known if bootstrap == "auto" else [bootstrap]
