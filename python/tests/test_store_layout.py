"""What a stored grid is for programs that know Zarr and nothing of Sudare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

zarr: Any = pytest.importorskip("zarr", reason="zarr-python 3 needs Python 3.11")
xarray: Any = pytest.importorskip("xarray")
pytest.importorskip("dask")

GOLDEN = Path(__file__).parents[2] / "crates/store/tests/golden/v1/grid.sudare"


def content(row: int, col: int) -> np.ndarray[Any, Any]:
    """The segment of the block at a place, as the golden store's writer makes it."""
    return ((np.arange(3000) * 31 + row * 7 + col * 3) % 256).astype(np.uint8)


def test_zarr_python_reads_every_block() -> None:
    group = zarr.open_group(str(GOLDEN), mode="r")
    about = group.attrs["sudare"]
    assert about["version"] == 1
    assert about["contents"] == {"shape": [20, 30], "scale": 1099511627776.5}
    blocks = group["blocks"]
    assert blocks.shape == (3, 2, 8192)
    assert blocks.dtype == np.uint8
    assert blocks.chunks == (1, 1, 8192)
    assert blocks.shards == (2, 2, 8192)
    for row in range(3):
        for col in range(2):
            block = blocks[row, col]
            assert block[:8].tobytes() == b"SUDARE\x1a\n"
            assert np.array_equal(block[4096 : 4096 + 3000], content(row, col))
    assert group["digests"].shape == (3, 2, 32)
    assert len({bytes(d) for d in group["digests"][:].reshape(6, 32)}) == 6


def test_xarray_and_dask_read_the_same() -> None:
    data = xarray.open_zarr(str(GOLDEN), consolidated=False, chunks={})
    assert data["blocks"].dims == ("block_row", "block_col", "byte")
    whole = data["blocks"].data
    assert type(whole).__module__.startswith("dask.")
    assert whole.chunks == ((1, 1, 1), (1, 1), (8192,))
    picked = whole[2, 1, 4096 : 4096 + 3000].compute(scheduler="synchronous")
    assert np.array_equal(picked, content(2, 1))
