"""Names of columns, and statistics of several tables together."""

from __future__ import annotations

import numpy as np
import pytest
import sudare as sd
from conftest import Floats


class Frame:
    """As much of a data frame as is asked for."""

    def __init__(self, values: Floats, columns: list[str]) -> None:
        self.values, self.columns = values, columns

    def __array__(self, dtype: object = None, copy: object = None) -> Floats:
        return self.values


def moments(values: Floats, columns: list[str] | None = None) -> sd.Moments:
    client = sd.Client(sd.table(values.shape, max_abs=4), threads=2)
    encrypted = client.encrypt(values if columns is None else Frame(values, columns))
    found = client.decrypt(client.server().moments(encrypted))
    assert isinstance(found, sd.Moments)
    return found


def test_tables_of_two_hospitals() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.uniform(-4, 4, (9, 3)), rng.uniform(0, 1, (4, 3))
    together = moments(a) + moments(b)
    x = np.vstack([a, b])
    assert together.rows == 13
    assert (np.abs(together.mean - x.mean(axis=0)) <= together.mean_error).all()
    assert (np.abs(together.covariance - np.cov(x, rowvar=False)) <= together.covariance_error).all()
    assert (together.covariance_error < 1e-4).all()
    with pytest.raises(sd.ShapeError, match="do not go together"):
        moments(a) + moments(b[:, :2])


def test_names_of_columns() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-4, 4, (6, 3))
    found = moments(x, ["height", "weight", "age"])
    assert found.columns == ("height", "weight", "age")
    assert "weight" in repr(found)
    picked = found[["age", 0]]
    assert picked.columns == ("age", "height")
    assert np.array_equal(picked.mean, found.mean[[2, 0]])
    assert picked.covariance[0, 1] == found.covariance[2, 0]
    assert found["weight"].variance.shape == (1,)
    assert found.named("abc").columns == ("a", "b", "c")
    for bad in ("ab", ["a", "a", "b"]):
        with pytest.raises(sd.ShapeError):
            found.named(bad)
    for column in ("colour", 3):
        with pytest.raises(sd.InputError, match="there are height, weight, age"):
            found[column]
    with pytest.raises(sd.ShapeError):
        found + found.named("abc")
    assert moments(x).columns == ("0", "1", "2")
