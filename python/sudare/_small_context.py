"""Encrypted arrays of bits and small integers without a plan, and what computing on them takes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from . import _core
from ._context_base import ContextBase
from ._errors import InputError, PlanError, PrecisionError, UnsupportedError
from ._memory import require
from ._opaque import Opaque
from ._progress import progress
from ._small_array import BITS, EncryptedSmall, modulus_of, small, words
from ._values import LARGEST, count, parts, security_bits

__all__ = ["Choice", "SmallContext", "explain"]

#: The sets whose bootstrap is a table.
TABLE_SETS = ["G15", "S15", "W16"]


@dataclass(frozen=True)
class Choice:
    """What a computation on bits and small integers would take by tables, and by TFHE.

    A table of a ciphertext takes the same time for one value as for all 32,768 or more, and TFHE bootstraps
    every value by itself. Both are estimated from measurements, for one core of a Zen 4; another machine
    changes both alike. What TFHE takes is a lower bound. `print` shows it.
    """

    bootstrap: str
    """The set of the tables."""
    by_tables: bool
    """Whether tables take less; otherwise `sudare.bits` does."""
    bootstraps: int
    """Bootstraps of ciphertexts by tables."""
    seconds: float
    """What these take."""
    tfhe_bootstraps: int
    """Bootstraps, or gates, that TFHE would take at least."""
    tfhe_seconds: float
    """What those take."""
    pays_from: int | None
    """From how many values a layer on tables take less; none for a computation without bootstraps."""
    reason: str
    """All that in words."""

    def __str__(self) -> str:
        return self.reason


def explain(
    function: Callable[..., Any],
    /,
    *,
    bootstrap: str = "auto",
    modulus: int | None = None,
    largest: int | None = None,
    **inputs: Any,
) -> Choice:
    """What a function of encrypted bits and small integers would take, and by which way, without keys.

    `function` is called once with stand-ins of its inputs, each given as an array, of which shape and type
    alone matter. `modulus` and `largest` are what `SmallContext.encrypt` would be given for integers; of
    booleans the modulus is the same if it is a multiple of 4, else 4. `bootstrap` names the set, or "auto"
    takes the one whose tables take least of those that have room for the computation, and then wants the
    modulus of integers. What would be refused there is refused here, with the same words.

    Raises `InputError` for integers without a modulus where no set is named, `PlanError` for a function that
    returns no array that it computed, or that no set has room for, `PrecisionError` where errors leave no
    room, `ShapeError` for shapes that do not go together.

    >>> few, many = np.zeros(10, bool), np.zeros(30_000, bool)
    >>> sd.explain(lambda a, b: a & ~b, a=few, b=few).by_tables
    False
    >>> print(sd.explain(lambda a, b: a & ~b, a=many, b=many))
    tables, set G15: 1 bootstrap of whole ciphertexts, about 0.68 s of a Zen 4 core
    TFHE: at least 30000 gates, about 78.30 s of a Zen 4 core
    take tables: they take less from some 262 values a layer on
    """
    integers = [key for key, given in inputs.items() if small(given).dtype.kind != "b"]
    if bootstrap == "auto" and modulus is None and integers:
        raise InputError(
            f"give the modulus of the integers of {integers[0]}, modulus=16 for example: sets differ in it"
        )
    found: list[Choice] = []
    refused: PlanError | PrecisionError | None = None
    for name in TABLE_SETS if bootstrap == "auto" else [bootstrap]:
        try:
            known = _core.SmallSet(name, 128)
            place = known, _core.SmallServer.keyless(known)
            found.append(_forecast(name, place, function, (modulus, largest), inputs))
        except (PlanError, PrecisionError) as error:
            # The largest set says what is missing there too.
            refused = error
    if not found and refused is not None:
        raise refused
    return min(found, key=lambda choice: choice.seconds)


def _forecast(
    name: str,
    place: tuple[_core.SmallSet, _core.SmallServer],
    function: Callable[..., Any],
    numbers: tuple[int | None, int | None],
    inputs: Mapping[str, Any],
) -> Choice:
    known, server = place
    operands = {}
    for key, given in inputs.items():
        values = small(given)
        bits, modulus = values.dtype.kind == "b", numbers[0]
        if bits and modulus is not None and modulus_of(modulus) % BITS:
            # It is that of the integers beside them.
            modulus = None
        core = server.forecast(values.size, *_numbers(known, (modulus, numbers[1]), bits), bits)
        operands[key] = EncryptedSmall(core, values.shape, server)
    results = parts(function(**operands))
    if not results or not all(isinstance(result, EncryptedSmall) for result in results):
        raise PlanError("the function has to return arrays of bits or small integers that it computed")
    return Choice(name, *server.choice([result._core for result in results]))


def _numbers(known: _core.SmallSet, given: tuple[int | None, int | None], bits: bool) -> tuple[int, int]:
    """Modulus and largest value: what is given, or what the set and the type have."""
    modulus = (BITS if bits else known.largest_modulus) if given[0] is None else modulus_of(given[0])
    if bits:
        return modulus, 1
    return modulus, modulus - 1 if given[1] is None else count(given[1], "largest")


class SmallContext(ContextBase):
    """Encrypts, computes and decrypts arrays of bits and small integers, with the secret key and all others.

    Made by `context(bootstrap="G15")` (booleans, integers modulo 2 to 4), `"S15"` (up to 16) or `"W16"` (up
    to 256). Results are exact, to any depth: what could come out wrong is refused before it is computed.

    >>> ctx = sd.context(bootstrap="G15", security="insecure", rolls=[1])  # no security: quick to try
    >>> a = np.array([True, True, False, True])
    >>> x = ctx.encrypt(a)
    >>> ctx.decrypt(x & ~np.roll(x, 1))
    array([False, False, False,  True])
    """

    _server: _core.SmallServer

    def __init__(
        self,
        bootstrap: str,
        *,
        security: int | Literal["insecure"] = 128,
        threads: int = 0,
        rolls: Iterable[int] = (),
    ) -> None:
        try:
            shifts = [operator.index(by) for by in rolls]
        except TypeError:
            raise InputError(f"rolls are whole numbers, [1, -1] for example, not {rolls!r}") from None
        if any(abs(by) > LARGEST for by in shifts):
            raise InputError(f"rolls are from {-LARGEST} to {LARGEST}, not {rolls!r}")
        self._set = _core.SmallSet(bootstrap, security_bits(security))
        require(self._set.memory(shifts), f"set {bootstrap}", "take a smaller set")
        with progress("making keys"):
            self._core = _core.SmallContext(self._set, shifts, threads)
        self._server = self._core.server()
        self._bootstrap, self._security, self._rolls = bootstrap, security, shifts

    @property
    def modulus(self) -> int:
        """The largest modulus of its integers, which they have unless another is said."""
        return self._set.largest_modulus

    @property
    def slots(self) -> int:
        """Elements of a ciphertext."""
        return self._set.slots

    def encrypt(self, x: Any, *, modulus: int | None = None, largest: int | None = None) -> EncryptedSmall:
        """Encrypt an array of booleans, or of integers from 0 to `largest`.

        Arithmetic is modulo `modulus`: for integers the set's largest without one, for booleans 4, which is
        what gates take. Give booleans that are counted a larger one, a multiple of 4. `largest` is
        `modulus` - 1 without one. Comparisons of two arrays and their products want numbers whose sums and
        differences stay under the modulus. Both numbers are public.

        Raises `InputError` for NaN and for an element out of range, `UnsupportedError` for what holds no
        integers, `ShapeError` for no elements, `PlanError` for a modulus that the set has no room for,
        `OutOfMemoryError` for more than fits into memory.
        """
        if isinstance(x, Opaque):
            raise UnsupportedError("this array is encrypted already; use it as it is")
        values = small(x)
        bits = values.dtype.kind == "b"
        t, most = _numbers(self._set, (modulus, largest), bits)
        wrong = np.argwhere((values < 0) | (values > most))
        if len(wrong):
            other = (
                f"say a larger largest=, up to {t - 1}"
                if most < t - 1
                else f"reduce it % {t}, or take a larger modulus, up to the set's"
            )
            raise InputError(f"the element at {tuple(wrong[0].tolist())} is not from 0 to {most}; {other}")
        ciphertexts = -(-values.size // self.slots)
        require(ciphertexts * self._set.ciphertext_bytes, "to encrypt this array", "encrypt it in parts")
        return EncryptedSmall(self._core.encrypt(words(values), t, most, bits), values.shape, self._server)

    def decrypt(self, x: Any, *, like: Any = None) -> Any:
        """Decrypt an array, or a tuple, a list, a dictionary or a dataclass of them.

        Elements are bool, or uint8 from 0 to their modulus - 1. `like` is a data frame whose columns, or
        rows, the result has: it comes as one.

        Raises `UnsupportedError` for what is no such array, `KeyMismatchError` for one of another
        context, `ShapeError` for other columns and rows than those of `like`.
        """

        def known(part: Any) -> EncryptedSmall:
            if not isinstance(part, EncryptedSmall):
                raise UnsupportedError(
                    f"encrypted bits and small integers are decrypted, not {type(part).__name__}"
                )
            return part

        return self._read(x, like, lambda part: self._core.decrypt(part._core).astype(part.dtype), known)

    def explain(
        self,
        function: Callable[..., Any],
        /,
        *,
        modulus: int | None = None,
        largest: int | None = None,
        **inputs: Any,
    ) -> Choice:
        """What a function would take in this context, and whether `sudare.bits` takes less.

        Takes and raises what `sudare.explain` does, for this context's set, and `MissingKeyError` for a shift
        that this context has no key for.
        """
        place = self._set, self._server
        return _forecast(self._bootstrap, place, function, (modulus, largest), inputs)

    def __repr__(self) -> str:
        return self._described(
            f"of integers modulo up to {self.modulus}, set {self._bootstrap}, {self.slots} elements a "
            f"ciphertext, shifts {self._rolls}"
        )
