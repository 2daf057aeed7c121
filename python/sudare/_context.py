"""Encrypted matrices without a plan, for trying things out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, overload

import numpy as np

from . import _core, _html, _tables
from ._array import plain
from ._context_base import ContextBase, checked, taken
from ._errors import InputError, UnsupportedError
from ._estimate import Estimate, Tiles, estimate
from ._frames import place
from ._integer_context import IntegerContext
from ._matrix import Encrypted, members, rows
from ._memory import require
from ._plan import INTEGER_SETS
from ._progress import progress
from ._release import Release, declared, wanted
from ._session import Server
from ._small_context import TABLE_SETS, SmallContext
from ._values import count, real, security_bits
from .learn._iterate import Iterating

__all__ = ["Context", "context"]


class Context(ContextBase):
    """Encrypts, computes and decrypts in one place: it holds the secret key and all others.

    Its matrices are those of any server, and every operation is done as it is called.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> ctx.decrypt(ctx.encrypt([1, 2]) + ctx.encrypt([3, 4])).round(3)
    array([4., 6.])
    """

    _server: Server

    def __init__(
        self,
        depth: int | None = None,
        *,
        security: int | Literal["insecure"] = 128,
        threads: int = 0,
        scale_bits: int | None = None,
        tile: int = 16,
        columns: int | None = None,
        release: Release | None = None,
        bootstrap: str | None = None,
        auto_refresh: bool = False,
    ) -> None:
        policy = declared(release)
        self._releases = policy is not None
        if not (bootstrap is None or isinstance(bootstrap, str)):
            raise UnsupportedError(
                f"bootstrap is the name of a set, 'A', 'A12', 'B' or 'C', not {bootstrap!r}"
            )
        own_scale, own_depth = (40, 3) if bootstrap is None else _core.Context.bootstrap_set(bootstrap)
        depth = own_depth if depth is None else depth
        scale_bits = own_scale if scale_bits is None else scale_bits
        with progress("making keys") as report:
            self._core = _core.Context(
                count(depth, "depth"),
                scale_bits=count(scale_bits, "scale_bits"),
                security=security_bits(security),
                threads=threads,
                tile=count(tile, "tile"),
                columns=None if columns is None else count(columns, "columns"),
                release=policy,
                bootstrap=bootstrap,
                automatic=bool(auto_refresh),
                progress=report,
            )
        self._server, self._depth, self._bootstrap = Server(self._core.server(), None), depth, bootstrap
        self._security, self._tile = security, count(tile, "tile")
        self._tiles: Tiles | None = None

    @property
    def depth(self) -> int:
        """Matrix products in a row that it was made for."""
        return self._depth

    @property
    def levels(self) -> int:
        """Levels of a fresh matrix; in a context that bootstraps, of a refreshed one too."""
        return self._server._core.levels

    @property
    def columns(self) -> int | None:
        """Columns of a tile, where matrices are tables over whole ciphertexts."""
        return self._server._core.columns

    @property
    def releases_left(self) -> int:
        """Results that may still be shown under its key, of those that it declares."""
        return self._core.releases_left

    def encrypt(self, x: Any, max_abs: float | None = None) -> Encrypted:
        """Encrypt a matrix or vector with elements up to `max_abs`.

        The bound is public. Without one it is the least power of two that holds all elements. In a context of
        tables a vector is a row, as NumPy broadcasts it; a column is a matrix, `v[:, None]`.

        Raises `ShapeError` for anything but a matrix or vector, `InputError` for an element that is
        not finite or over the bound, `UnsupportedError` for what holds no numbers, `OutOfMemoryError` for
        more than fits into memory.
        """
        lines = rows if self.columns is None else _tables.rows
        values, dropped = taken(x, lambda given: lines(plain(given)))
        bound = None if max_abs is None else real(max_abs, "max_abs")
        over = np.argwhere(np.abs(values) > (np.inf if bound is None else bound))
        if len(over):
            at = tuple(over[0].tolist()) if not dropped else (int(over[0].max()),)
            raise InputError(f"{place(x, at)} is over max_abs={bound:g}; give a larger one, or none")
        # Two words for each of N coefficients, and half as many numbers, at each level.
        require(values.size * 32 * (self.levels + 1), "to encrypt this matrix", "encrypt it in parts")
        return Encrypted(self._core.encrypt(members(values), bound), None, self._server, dropped)

    def decrypt(self, x: Any, *, release: bool = False, private: bool = False, like: Any = None) -> Any:
        """Decrypt a matrix for the owner's eyes, or with `release` for others to see.

        A tuple, a list, a dictionary or a dataclass of matrices is decrypted as such, and an estimator of
        `sudare.learn` that was fitted on encrypted tables as one that is fitted. `like` is a data frame
        whose columns, or rows, the result has: it comes as one.

        A released matrix has noise on it: see `released_error`. The context has to declare it. Where it does,
        one of `release` and `private` has to be said.

        Raises `UnsupportedError` for what is no encrypted matrix, `KeyMismatchError` for one of another
        context, `ReleaseError` for a release that is not declared or none is left of, and where releases are
        declared and neither word is said, `ShapeError` for other columns and rows than those of `like`.
        """
        if isinstance(x, Iterating):
            return x._decrypted(lambda part: self.decrypt(part, release=release, private=private))
        released = wanted(release, private, self._releases)
        return self._read(x, like, lambda core: self._core.decrypt(core, released), checked)

    def estimate(self, function: Callable[..., Any], /, **inputs: Any) -> Estimate:
        """Seconds and bytes that a function of encrypted matrices would take here, before it is done.

        `function` is called once with stand-ins for its inputs, each given as a matrix or vector, of which
        the shape alone matters, or as a `sudare.spec`. Its operations are counted by tiles and timed on one,
        once for each operation; fresh matrices are what is timed, and the machine is taken to be as busy as
        now.
        More than 10 seconds or 1 GB is told by a `CostWarning`.

        Raises `ShapeError` for shapes that do not go together, `PlanError` for a function that returns no
        matrix, `UnsupportedError` for an operation that there is not.
        """
        if self._tiles is None:
            self._tiles = Tiles(self, self._tile)
        return estimate(self, self._tiles, function, inputs)

    def released_error(self, x: Encrypted) -> float:
        """How far a released matrix is from the true one at most.

        The bounds of a context are worst-case; a plan's are tighter.

        Raises `UnsupportedError` for what is no encrypted matrix, `ReleaseError` in a context without
        releases.
        """
        return self._core.released_error(checked(x))

    def _repr_html_(self) -> str:
        return _html.context(self)

    def __repr__(self) -> str:
        kind = "" if self.columns is None else f"tables of {self.columns} columns, "
        levels = f"{self.levels} levels" + ("" if self._bootstrap is None else f" by set {self._bootstrap}")
        return self._described(f"depth {self.depth}, {kind}N = 2^{self._server._core.log_n}, {levels}")


@overload
def context(  # type: ignore[overload-overlap]
    *,
    security: int | Literal["insecure"] = 128,
    threads: int = 0,
    bootstrap: Literal["X15", "X16"],
) -> IntegerContext: ...


@overload
def context(  # type: ignore[overload-overlap]
    *,
    security: int | Literal["insecure"] = 128,
    threads: int = 0,
    bootstrap: Literal["G15", "S15", "W16"],
    rolls: Iterable[int] = (),
) -> SmallContext: ...


@overload
def context(
    depth: int | None = None,
    *,
    security: int | Literal["insecure"] = 128,
    threads: int = 0,
    scale_bits: int | None = None,
    tile: int = 16,
    columns: int | None = None,
    release: Release | None = None,
    bootstrap: str | None = None,
    auto_refresh: bool = False,
) -> Context: ...


def context(
    depth: int | None = None,
    *,
    security: int | Literal["insecure"] = 128,
    threads: int = 0,
    scale_bits: int | None = None,
    tile: int = 16,
    columns: int | None = None,
    release: Release | None = None,
    bootstrap: str | None = None,
    auto_refresh: bool = False,
    rolls: Iterable[int] | None = None,
) -> Context | IntegerContext | SmallContext:
    """A context with new keys, to try things out without a plan.

    `depth` is the number of matrix products in a row that it has room for (3), three levels each. A matrix
    product takes two, and one more where an operand is itself a product; `*`, `.T`, `.sum` and factors that
    are no integers take one; `+` and `-` none, or one where the operands' scales have drifted apart.
    `bootstrap` names a set: "A" (9 levels between refreshes, 26 bits), "A12" (12), "B" (5, 20 bits, faster)
    or "C" (4, 16 bits, half the ring). Matrices then have `refresh()`, and depth and precision are the
    set's. With `auto_refresh` they do it by themselves where levels end, to the bound that they carry: see
    `x.bounded`. The sets "X15" (3 products between refreshes) and "X16" (20) are for integers, exact modulo
    65537. The context is then an `IntegerContext`, which refreshes by itself. Its only settings are
    `security` and `threads`. The sets "G15", "S15" and "W16" are for booleans and integers modulo up to 4,
    16 and 256, with any table of their values (`table`). The context is then a `SmallContext`, with the
    same settings and `rolls`, the shifts of `numpy.roll` that it makes keys for. Names of sets are taken in
    any case of letters. `columns` lays matrices as tables over whole ciphertexts, that many columns (a
    power of two) side by side: the layout for data of many rows. `+ - *` broadcast there as NumPy's do,
    also among encrypted operands; `X @ w` and `v @ X` are products with vectors, and there are none of
    matrices. `security` is in bits, `threads` 0 for one for each processor, `scale_bits` the precision (40;
    30 to 55), and `tile` the side of the tiles that matrices are cut into. A `security` of "insecure" is
    none: the same levels on a ring of a few thousand numbers, to try a program in seconds. A `release`
    declares how many results will be shown to others; its noise takes a high precision. What a plan would
    choose from the expression is chosen here for whatever may come: a plan's keys are smaller and it is
    faster.

    Raises `UnsupportedError` for other settings beside a set of integers, `OutOfMemoryError` for one whose
    keys do not fit into memory.

    >>> ctx = context(depth=1, tile=4)
    >>> x = ctx.encrypt([[1, 2], [3, 4]])
    >>> ctx.decrypt(x @ x).round(3)
    array([[ 7., 10.],
           [15., 22.]])
    """
    if isinstance(bootstrap, str) and bootstrap.upper() in (*INTEGER_SETS, *TABLE_SETS):
        bootstrap = bootstrap.upper()
        given = depth, scale_bits, columns, release, auto_refresh or None
        integers = bootstrap in INTEGER_SETS
        if any(setting is not None for setting in given) or tile != 16 or (integers and rolls is not None):
            own, why = (
                ("security and threads", "it refreshes by itself")
                if integers
                else ("security, threads and rolls", "a table is its refresh")
            )
            raise UnsupportedError(
                f"a context of integers, set {bootstrap}, takes {own} as its settings, and no others; {why}"
            )
        if integers:
            return IntegerContext(bootstrap, security=security, threads=threads)
        return SmallContext(bootstrap, security=security, threads=threads, rolls=rolls or ())
    if rolls is not None:
        raise UnsupportedError(
            'only a context of small integers takes rolls: sudare.context(bootstrap="S15", rolls=[1, -1])'
        )
    return Context(
        depth,
        security=security,
        threads=threads,
        scale_bits=scale_bits,
        tile=tile,
        columns=columns,
        release=release,
        bootstrap=bootstrap,
        auto_refresh=auto_refresh,
    )
