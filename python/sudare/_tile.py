"""Parts of encrypted matrices in memory: what the tasks of a cluster take and give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._errors import ShapeError, UnsupportedError
from ._opaque import Opaque

if TYPE_CHECKING:
    from ._matrix import Encrypted
    from ._plan import Plan

__all__ = ["About", "EncryptedTile"]

#: Node, form, rows and columns of blocks, and where they are: a store, or containers row by row.
Given: TypeAlias = (
    "tuple[int, int, tuple[int, int], tuple[int, int], _core.Stored | None, list[NDArray[np.uint8]]]"
)

# The form of a part, bit by bit: sums of several values, over rows of blocks, over columns of blocks.
ADDED, ROWS, COLS = 1, 2, 4


@dataclass(frozen=True)
class About:
    """What a part is a part of, in words that travel with each: public data alone."""

    plan: str
    key: str
    node: int
    shape: tuple[int, int]
    grid: tuple[int, int]
    block: tuple[int, int]

    def chunks(self, window: range, axis: int) -> tuple[int, ...]:
        """Elements of each of some blocks along an axis."""
        block, all_ = self.block[axis], self.shape[axis]
        return tuple(min(block, all_ - block * i) for i in window)


class EncryptedTile(Opaque):
    """A window of the blocks of an encrypted matrix, or a sum of some, in memory.

    Made by the tasks of `sudare.dask`. Its blocks are arrays of bytes, each a container of the wire format:
    they are pickled without a copy, and are as large as they say. `client.decrypt` takes it; `load` makes a
    value of the plan of a whole one.
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self, about: About, form: int, window: tuple[range, range], blocks: tuple[NDArray[np.uint8], ...]
    ) -> None:
        self.about, self._form, self._window, self._blocks = about, form, window, blocks

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that decryption gives: axes that were summed over are gone."""
        if not self._blocks:
            return (0,) * self.ndim
        sides = [sum(self.about.chunks(window, axis)) for axis, window in enumerate(self._window)]
        return tuple(n for n, summed in zip(sides, (ROWS, COLS), strict=True) if not self._form & summed)

    @property
    def ndim(self) -> int:
        """Axes."""
        return 2 - bool(self._form & ROWS) - bool(self._form & COLS)

    @property
    def nbytes(self) -> int:
        """Bytes of its blocks."""
        return sum(block.nbytes for block in self._blocks)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes

    @property
    def _given(self) -> Given:
        down, across = self._window
        spans = (down.start, down.stop), (across.start, across.stop)
        return self.about.node, self._form, *spans, None, list(self._blocks)

    def load(self, plan: Plan) -> Encrypted:
        """The value of a plan that a whole tile is: to store, to send, to decrypt for release."""
        from ._matrix import Encrypted

        return Encrypted(_core.load_part(plan._core, self._given), plan, None)

    def __getitem__(self, index: Any) -> EncryptedTile:
        """Nothing of it, or all: dask asks for the one to know what it has."""
        index = index if isinstance(index, tuple) else (index,)
        if any(isinstance(i, slice) and i.start == i.stop == 0 for i in index):
            return EncryptedTile(self.about, self._form, self._window, ())
        if all(isinstance(i, slice) and i == slice(None) for i in index):
            return self
        raise UnsupportedError("an encrypted tile has no parts; cut the stored matrix along its blocks")

    def copy(self) -> EncryptedTile:
        """Itself: nothing changes it."""
        return self

    def astype(self, dtype: Any, **_: Any) -> EncryptedTile:
        """Itself: its elements are real numbers.

        Raises `UnsupportedError` for another type.
        """
        if np.dtype(dtype) != self.dtype:
            raise UnsupportedError("encrypted elements are float64; convert after decryption")
        return self

    def __dask_tokenize__(self) -> Any:
        """Its name for dask: what its blocks hold."""
        blocks = [block.tobytes() for block in self._blocks]
        return "sudare-tile", self.about, self._form, self._window, blocks

    def __reduce__(self) -> tuple[Callable[..., EncryptedTile], tuple[Any, ...]]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return EncryptedTile, (self.about, self._form, self._window, self._blocks)

    def __repr__(self) -> str:
        return f"<sudare tile {self.shape}, {len(self._blocks)} blocks, {self.nbytes / 1e6:.1f} MB>"


def join(parts: Any) -> EncryptedTile:
    """One tile of the tiles of a grid, as nested lists of any depth."""
    flat: list[EncryptedTile] = []

    def walk(some: Any) -> None:
        if isinstance(some, EncryptedTile):
            flat.append(some)
        else:
            for one in some:
                walk(one)

    walk(parts)
    first = flat[0]
    if any((tile.about, tile._form) != (first.about, first._form) for tile in flat):
        raise ShapeError("these are tiles of different matrices; take those of one")
    down, across = (
        range(min(t._window[axis].start for t in flat), max(t._window[axis].stop for t in flat))
        for axis in (0, 1)
    )
    blocks: dict[tuple[int, int], NDArray[np.uint8]] = {}
    for tile in flat:
        places = ((row, col) for row in tile._window[0] for col in tile._window[1])
        blocks.update(zip(places, tile._blocks, strict=True))
    if len(blocks) != len(down) * len(across):
        raise ShapeError(f"{len(blocks)} blocks do not make a window of {len(down)} × {len(across)}")
    ordered = tuple(blocks[row, col] for row in down for col in across)
    return EncryptedTile(first.about, first._form, (down, across), ordered)
