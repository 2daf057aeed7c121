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


def check(x: Floats, bounds: Floats, moments: sd.Moments, relative: float = 1e-8) -> None:
    """Every moment is within its error, and that is small in units of the columns' bounds."""
    assert (np.abs(moments.mean - x.mean(axis=0)) <= moments.mean_error).all()
    assert (moments.mean_error <= relative * bounds).all()
    wanted = np.cov(x, rowvar=False).reshape(x.shape[1], x.shape[1])
    assert (np.abs(moments.covariance - wanted) <= moments.covariance_error).all()
    assert (moments.covariance_error <= relative * np.outer(bounds, bounds)).all()
    assert np.array_equal(moments.covariance, moments.covariance.T)
    assert (np.abs(moments.std - x.std(axis=0, ddof=1)) <= moments.std_error).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.corrcoef(x, rowvar=False).reshape(wanted.shape)
    known = ~np.isnan(moments.correlation)
    assert (
        np.abs(moments.correlation - correlation)[known] <= moments.correlation_error[known] + 1e-12
    ).all()


def test_wine() -> None:
    x = real_data("wine_data.csv")
    bounds = np.ceil(np.abs(x).max(axis=0))
    spec = sd.table(x.shape, max_abs=bounds)
    client = sd.Client(spec, threads=2)
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
    same = sd.Client.from_secret_bytes(spec, client.secret_bytes(), threads=2)
    check(x, bounds, same.decrypt(again))
    with pytest.raises(sd.KeyMismatchError):
        sd.Client(spec).decrypt(again)

    for shown in (client, server, encrypted, again, spec):
        assert repr(shown).startswith("<sudare")
    assert (encrypted.shape, again.shape, spec.errors.shape) == ((178, 13), (14, 13), (14, 13))


def test_many_columns_of_a_hospital() -> None:
    x = real_data("breast_cancer.csv")[:, :6]
    bounds = np.abs(x).max(axis=0) * 1.01
    client = sd.Client(sd.table(x.shape, max_abs=bounds), threads=2)
    check(x, bounds, client.decrypt(client.server().moments(client.encrypt(x))))


def test_constant_columns_and_columns_of_every_size() -> None:
    rng = np.random.default_rng(11)
    x = rng.normal(size=(50, 5)) * [1e-6, 1, 1e6, 1, 1]
    x[:, 3] = 0.25
    x[:, 4] = x[:, 1] + 0.1 * x[:, 4]
    bounds = np.array([1e-5, 10, 1e7, 1, 10])
    client = sd.Client(sd.table(x.shape, max_abs=bounds), threads=2)
    encrypted = client.encrypt(x)
    moments = client.decrypt(client.server().moments(encrypted))
    check(x, bounds, moments)
    # Digits do not go to the largest column.
    assert np.allclose(moments.variance[[0, 1, 2, 4]], x.var(axis=0, ddof=1)[[0, 1, 2, 4]], rtol=1e-4)
    # It was 1 or -1, the correlation of noise with noise.
    assert np.isnan(moments.correlation[3]).all()
    assert np.isnan(moments.correlation[:, 3]).all()
    others = [0, 1, 2, 4]
    found, wanted = moments.correlation[np.ix_(others, others)], np.corrcoef(x[:, others], rowvar=False)
    assert np.abs(found - wanted).max() < 1e-4
    assert (moments.correlation_error[np.ix_(others, others)] < 1e-3).all()
    text = repr(moments)
    assert "±" in text
    assert len(text.splitlines()) == 7


def test_a_bound_far_too_large_is_told() -> None:
    spec = sd.table((20, 2), max_abs=[1e6, 1])
    x = np.column_stack([np.linspace(-1, 1, 20), np.linspace(0, 1, 20)])
    client = sd.Client(spec, threads=2)
    with pytest.warns(UserWarning, match=r"column 0 has the variance 3\.\de-01, which comes back within"):
        encrypted = client.encrypt(x)
    moments = client.decrypt(client.server().moments(encrypted))
    assert np.isnan(moments.correlation[0]).all()
    assert (np.abs(moments.covariance - np.cov(x, rowvar=False)) <= moments.covariance_error).all()


def test_release() -> None:
    x = real_data("wine_data.csv")[:, :5]
    bounds = np.ceil(np.abs(x).max(axis=0))
    spec = sd.table(x.shape, max_abs=bounds, release=sd.Release(3, 30))
    client = sd.Client(spec, threads=2)
    encrypted = client.server().moments(client.encrypt(x))
    with pytest.raises(sd.ReleaseError, match=r"release=True .* private=True"):
        client.decrypt(encrypted)
    private, shown = client.decrypt(encrypted, private=True), client.decrypt(encrypted, release=True)
    check(x, bounds, private, 1e-11)
    check(x, bounds, shown, 1e-4)
    assert np.array_equal(shown.covariance_error, spec.errors[1:])
    assert (np.abs(shown.mean - private.mean) > private.mean_error).any()
    again = sd.Client.from_secret_bytes(spec, client.secret_bytes(), threads=2)
    assert again.releases_left == 2
    again.decrypt(encrypted, release=True)
    again.decrypt(encrypted, release=True)
    with pytest.raises(sd.ReleaseError, match="all are used"):
        again.decrypt(encrypted, release=True)
    assert pickle.loads(pickle.dumps(spec)).release == spec.release
    plain = sd.Client(sd.table((5, 2)), threads=1)
    moments = plain.server().moments(plain.encrypt(np.zeros((5, 2))))
    with pytest.raises(sd.ReleaseError, match="this plan was made without releases"):
        plain.decrypt(moments, release=True)


def test_refusals() -> None:
    with pytest.raises(sd.ShapeError):
        sd.table((5, 2), max_abs=[1, 2, 3])
    with pytest.raises(sd.SudareError):
        sd.table((1, 2))
    with pytest.raises(sd.SudareError):
        sd.table((5, 2), max_abs=[1, 0])
    spec = sd.table((5, 2))
    client = sd.Client(spec, threads=1)
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
        sd.Encrypted.from_bytes(spec, encrypted.to_bytes()[:-1])
    with pytest.raises(sd.PlanError):
        client.decrypt(encrypted)
    with pytest.raises(sd.KeyMismatchError):
        sd.Encrypted.from_bytes(sd.table((6, 2)), encrypted.to_bytes())
    with pytest.raises(sd.PlanError, match="public key"):
        sd.PublicClient(spec, client.public().to_bytes())
