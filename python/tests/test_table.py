"""Statistics of encrypted tables against NumPy, on real data, and what they refuse."""

from __future__ import annotations

import csv
import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
import sudare as sd
from conftest import Floats


def real_data(name: str) -> Floats:
    """A table of the files inside the scikit-learn package, which is not imported."""
    package = importlib.util.find_spec("sklearn")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "datasets" / "data" / name
    with path.open(newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    # The last column is the class.
    return np.array(rows, dtype=float)[:, :-1]


def check(x: Floats, bounds: Floats, moments: sd.Moments) -> None:
    """Errors are measured in units of the columns' bounds."""
    assert np.abs((moments.mean - x.mean(axis=0)) / bounds).max() < 1e-6
    wanted = np.cov(x, rowvar=False).reshape(x.shape[1], x.shape[1])
    assert np.abs((moments.covariance - wanted) / np.outer(bounds, bounds)).max() < 1e-6
    assert np.array_equal(moments.covariance, moments.covariance.T)


def test_wine() -> None:
    x = real_data("wine_data.csv")
    bounds = np.ceil(np.abs(x).max(axis=0))
    spec = sd.table(x.shape, max_abs=bounds)
    client = sd.TableClient(spec, threads=2)
    server = client.server()
    encrypted = client.encrypt(x)
    moments = client.decrypt(server.moments(encrypted))
    check(x, bounds, moments)
    assert np.allclose(moments.variance, x.var(axis=0, ddof=1), rtol=1e-3)
    assert np.abs(moments.correlation - np.corrcoef(x, rowvar=False)).max() < 1e-3

    # Everything that travels comes back, and the secret does not travel.
    again = pickle.loads(pickle.dumps(server)).moments(pickle.loads(pickle.dumps(encrypted)))
    check(x, bounds, client.decrypt(pickle.loads(pickle.dumps(again))))
    with pytest.raises(sd.UnsupportedError):
        pickle.dumps(client)
    same = sd.TableClient.from_secret_bytes(spec, client.secret_bytes(), threads=2)
    check(x, bounds, same.decrypt(again))
    with pytest.raises(sd.KeyMismatchError):
        sd.TableClient(spec).decrypt(again)

    for shown in (client, server, encrypted, again, spec):
        assert repr(shown).startswith("<sudare")
        assert "(178, 13)" in repr(shown).replace("178×13", "(178, 13)")


def test_many_columns_of_a_hospital() -> None:
    x = real_data("breast_cancer.csv")[:, :6]
    bounds = np.abs(x).max(axis=0) * 1.01
    client = sd.TableClient(sd.table(x.shape, max_abs=bounds), threads=2)
    check(x, bounds, client.decrypt(client.server().moments(client.encrypt(x))))


def test_refusals() -> None:
    with pytest.raises(sd.ShapeError):
        sd.table((5, 2), max_abs=[1, 2, 3])
    with pytest.raises(sd.SudareError):
        sd.table((1, 2))
    with pytest.raises(sd.SudareError):
        sd.table((5, 2), max_abs=[1, 0])
    spec = sd.table((5, 2))
    client = sd.TableClient(spec, threads=1)
    with pytest.raises(sd.ShapeError):
        client.encrypt(np.zeros((2, 5)))
    with pytest.raises(sd.ShapeError):
        client.encrypt(np.zeros(10))
    with pytest.raises(sd.InputError, match="bound"):
        client.encrypt(np.full((5, 2), 1.5))
    with pytest.raises(sd.InputError):
        client.encrypt(np.full((5, 2), np.nan))
    encrypted = client.encrypt(np.zeros((5, 2)))
    with pytest.raises(sd.UnsupportedError):
        np.asarray(encrypted)
    with pytest.raises(sd.FormatError):
        sd.EncryptedTable.from_bytes(spec, encrypted.to_bytes()[:-1])
    with pytest.raises(sd.SudareError):
        sd.EncryptedMoments.from_bytes(spec, encrypted.to_bytes())
    with pytest.raises(sd.SudareError):
        sd.EncryptedTable.from_bytes(sd.table((6, 2)), encrypted.to_bytes())
