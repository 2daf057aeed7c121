"""Encrypted matrices without a plan, for trying things out."""

from __future__ import annotations

from typing import Any, NoReturn

from ._array import COLUMN, MATRIX, Floats, Shape, plain
from ._core import Context as CoreContext
from ._core import ContextMatrix as Core
from ._core import ContextServer as CoreServer
from ._errors import ShapeError, UnsupportedError
from ._matrix import EncryptedArray
from ._progress import progress
from ._release import Release, declared, wanted
from ._values import count, real

__all__ = ["Context", "ContextMatrix", "context"]


class ContextOperations:
    """The operators on the matrices of a context, done by the part of it that has no secret."""

    def __init__(self, server: CoreServer) -> None:
        self._server = server

    def matmul(self, left: Core, right: Core) -> Core:
        """The matrix product."""
        return self._server.matmul(left, right)

    def elementwise(self, operation: str, left: Core, right: Core) -> Core:
        """A sum, difference or product, element by element."""
        made: Core = getattr(self._server, operation)(left, right)
        return made

    def negative(self, operand: Core) -> Core:
        """The negative."""
        return self._server.negative(operand)

    def scale(self, operand: Core, factor: float) -> Core:
        """The multiple by a number."""
        return self._server.scale(operand, factor)

    def shift(self, operand: Core, number: float) -> Core:
        """A number added to every element."""
        return self._server.shift(operand, number)

    def transpose(self, operand: Core) -> Core:
        """The transpose."""
        return self._server.transpose(operand)

    def sum(self, operand: Core, axis: int) -> Core:
        """The sum over an axis."""
        return self._server.sum(operand, axis)

    def lift(self, values: Floats) -> Core:
        """A plain matrix as an operand."""
        return self._server.plain(rows_and_columns(values))


class ContextMatrix(EncryptedArray):
    """A matrix or vector that nobody can read without the context that encrypted it.

    Computed with by `@ + - *`, `.T`, `.sum(axis)` and NumPy's functions of these.
    """

    _core: Core

    def __init__(self, core: Core, server: CoreServer, dropped: Shape) -> None:
        self._core, self._server, self._dropped = core, server, dropped

    @property
    def _do(self) -> ContextOperations:
        return ContextOperations(self._server)

    def _wrap(self, core: Any, dropped: Shape) -> ContextMatrix:
        return ContextMatrix(core, self._server, dropped)

    @property
    def max_abs(self) -> float:
        """The public bound on its elements."""
        return self._core.max_abs

    @property
    def error(self) -> float:
        """Bound on the error of its elements, in the worst case."""
        return self._core.error

    @property
    def level(self) -> int:
        """Levels left; in a context that bootstraps, those to the next refresh."""
        return self._server.levels_left(self._core)

    def refresh(self, max_abs: float | None = None) -> ContextMatrix:
        """The same matrix with the levels of a fresh one: bootstrapping.

        The bound that a matrix carries grows with every product. Where you know that its elements are
        smaller, say so with `max_abs`; elements over it come back wrong. A bound over 1 takes a level, and
        bits in proportion. The context has to be made with `bootstrap`.
        """
        bound = None if max_abs is None else real(max_abs, "max_abs")
        return ContextMatrix(self._server.refresh(self._core, bound), self._server, self._dropped)

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a matrix of a context does not pickle; the matrices of a plan do: sudare.plan"
        )


class Context:
    """Encrypts, computes and decrypts in one place: it holds the secret key and all others."""

    def __init__(
        self,
        depth: int | None = None,
        *,
        security: int = 128,
        threads: int = 0,
        scale_bits: int | None = None,
        tile: int = 16,
        release: Release | None = None,
        bootstrap: str | None = None,
    ) -> None:
        policy = declared(release)
        if not (bootstrap is None or isinstance(bootstrap, str)):
            raise UnsupportedError(
                f"bootstrap is the name of a set, 'A', 'A12', 'B' or 'C', not {bootstrap!r}"
            )
        own_scale, own_depth = (40, 3) if bootstrap is None else CoreServer.bootstrap_set(bootstrap)
        depth = own_depth if depth is None else depth
        scale_bits = own_scale if scale_bits is None else scale_bits
        with progress("making keys") as report:
            self._core = CoreContext(
                count(depth, "depth"),
                scale_bits=count(scale_bits, "scale_bits"),
                security=count(security, "security"),
                threads=threads,
                tile=count(tile, "tile"),
                release=policy,
                bootstrap=bootstrap,
                progress=report,
            )
        self._server, self._depth = self._core.server(), depth

    @property
    def depth(self) -> int:
        """Matrix products in a row that it was made for."""
        return self._depth

    @property
    def levels(self) -> int:
        """Levels of a fresh matrix."""
        return self._server.levels

    @property
    def threads(self) -> int:
        """How many threads work."""
        return self._server.threads

    @property
    def key_bytes(self) -> int:
        """Bytes of its evaluation keys in memory."""
        return self._server.key_bytes

    @property
    def releases_left(self) -> int:
        """Results that may still be shown under its key, of those that it declares."""
        return self._core.releases_left

    def encrypt(self, x: Any, max_abs: float | None = None) -> ContextMatrix:
        """Encrypt a matrix or vector with elements up to `max_abs`.

        The bound is public. Without one it is the least power of two that holds all elements.
        """
        if isinstance(x, EncryptedArray):
            raise UnsupportedError("this matrix is encrypted already")
        values = plain(x)
        vector = values.ndim == 1
        bound = None if max_abs is None else real(max_abs, "max_abs")
        core = self._core.encrypt(rows_and_columns(values.reshape(-1, 1) if vector else values), bound)
        return ContextMatrix(core, self._server, COLUMN if vector else MATRIX)

    def decrypt(self, x: ContextMatrix, *, release: bool = False) -> Floats:
        """Decrypt a matrix for the owner's eyes, or with `release` for others to see.

        A released matrix has noise on it: see `released_error`. The context has to declare it.
        """
        return self._core.decrypt(_checked(x), wanted(release)).reshape(x.shape)

    def released_error(self, x: ContextMatrix) -> float:
        """How far a released matrix is from the true one at most.

        The bounds of a context are worst-case; a plan's are tighter.
        """
        return self._core.released_error(_checked(x))

    def __repr__(self) -> str:
        return (
            f"<sudare context depth {self.depth}, N = 2^{self._server.log_n}, {self.levels} levels, "
            f"{self.threads} threads, keys {self.key_bytes / 1e6:.0f} MB, secret key hidden>"
        )

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError("a context holds a secret key and does not pickle; use a plan and its client")


def _checked(x: ContextMatrix) -> Core:
    if not isinstance(x, ContextMatrix):
        raise UnsupportedError(f"a matrix of a context is decrypted, not {type(x).__name__}")
    return x._core


def rows_and_columns(values: Floats) -> Floats:
    """One matrix with the axes batch, row, column."""
    if values.ndim != 2:
        raise ShapeError(f"a context takes matrices and vectors, not an array of shape {values.shape}")
    return values.reshape((1, *values.shape))


def context(
    depth: int | None = None,
    *,
    security: int = 128,
    threads: int = 0,
    scale_bits: int | None = None,
    tile: int = 16,
    release: Release | None = None,
    bootstrap: str | None = None,
) -> Context:
    """A context with new keys, to try things out without a plan.

    `depth` is the number of matrix products in a row that it has room for (3), three levels each. A
    matrix product takes two, and one more where an operand is itself a product; `*`, `.T`, `.sum`
    and factors that are no integers take one; `+` and `-` none, or one where the operands' scales
    have drifted apart.
    `bootstrap` names a set: "A" (9 levels between refreshes, 26 bits), "A12" (12), "B" (5, 20 bits, faster)
    or "C" (4, 16 bits, half the ring). Matrices then have `refresh()`, and depth and precision are the set's.
    `security` is in bits, `threads` 0 for one for each processor, `scale_bits` the precision (40; 30 to
    55), and `tile` the side of the tiles that matrices are cut into. A `release` declares how many
    results will be shown to others; its noise takes a high precision. What a plan would choose from the
    expression is chosen here for whatever may come: a plan's keys are smaller and it is faster.

    >>> ctx = context(depth=1, tile=4)
    >>> x = ctx.encrypt([[1, 2], [3, 4]])
    >>> ctx.decrypt(x @ x).round(3)
    array([[ 7., 10.],
           [15., 22.]])
    """
    return Context(
        depth,
        security=security,
        threads=threads,
        scale_bits=scale_bits,
        tile=tile,
        release=release,
        bootstrap=bootstrap,
    )
