"""What NumPy users write, on each kind of encrypted array: what NumPy gives, or a refusal that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sudare as sd
from expressions import put
from sudare._trace import Expression

# a and b are matrices, s a square one, v and w vectors, t a number; P, Q and r are plain. Of each kind.
SPELLINGS = """
a + b; a - b; a * b; a + 2; 2 - a; 3 * a; a + P; P - a; P * a; a + v; v * a; a * r; -a; +a; a ** 2; a ** 3
a ** 0; a / 4; a / P; 1 / a; a / b; a // 2; a % 2; divmod(a, 2); a // P; abs(a); a > b; a >= 1; a < P
a <= b; a == b; a != b; s @ s; a @ v; a @ r; P.T @ a; v @ w; a.T @ a; s @ v; r @ a.T; a.dot(v); np.dot(a, r)
np.dot(a, 2); a @ 2; a + None; a[0]; a[-1]; a[1:2, ::2]; a[..., 0]; a[:, 1]; v[None]; v[:, None]; a[0, 0]
a[::-1]; a[:, ::-1]; a[9]; a[0, 0, 0]; a[[1, 0, 1]]; a[:, [2, 0]]; a[np.array([True, False])]; v[[2, 2, 0]]
v[v_mask]; a[P > 0]; a[0:0]; v[3:]; a[None]; a[np.ix_([0, 1], [0, 2])]; a.T; a.mT; a.transpose()
a.transpose(1, 0); a.reshape(3, 2); a.reshape(-1); a.reshape((6, 1)); a.reshape(3, 2, order='F'); a.ravel()
a.ravel('F'); a.flatten(); a.flatten('F'); a.squeeze(); a.swapaxes(0, 1); a.copy(); a.sum(); a.sum(0)
a.sum(axis=-1); a.sum(axis=1, keepdims=True); a.sum((0, 1)); a.mean(); a.mean(1); a.var(); a.std()
a.cumsum(); a.cumsum(axis=0); a.cumprod(); a.prod(); a.max(); a.min(0); a.argmax(); a.any(); a.all()
a.clip(0, 1); a.trace(); a.diagonal(); a.repeat(2); a.repeat(2, axis=0); a.take([0, 2]); a.round(); a.sort()
a.argsort(); a.tolist(); a.astype(float); a.item(); len(a); a.ndim; a.size; a.shape; list(a); sum(a)
[x for x in v]; float(t); a.conj(); np.add(a, b); np.subtract(a, b); np.multiply(a, b); np.matmul(s, s)
np.negative(a); np.positive(a); np.square(a); np.power(a, 2); np.float_power(a, 2); np.divide(a, 2)
np.reciprocal(a); np.floor_divide(a, 2); np.remainder(a, 2); np.exp(a); np.log(a); np.sqrt(a); np.tanh(a)
np.sin(a); np.cos(a); np.arctan(a); np.cbrt(a); np.log1p(a); np.sign(a); np.abs(a); np.floor(a); np.ceil(a)
np.trunc(a); np.rint(a); np.round(a); np.hypot(a, b); np.isnan(a); np.isfinite(a); np.conjugate(a)
np.real(a); np.imag(a); np.iscomplexobj(a); np.isrealobj(a); np.nan_to_num(a); np.maximum(a, b)
np.minimum(a, 0); np.greater(a, b); np.clip(a, 0, 1); np.where(mask, a, b); np.where(mask, a, 0)
np.where(mask, 1, a); np.where(a > 0, a, 0); np.add.reduce(a); np.add.reduce(a, axis=1)
np.add.accumulate(a); np.multiply.outer(v, w); np.multiply.reduce(a); np.add.outer(v, w); np.sum(a)
np.sum(a, axis=0); np.sum(a, axis=(0, 1)); np.sum(t, axis=0); np.sum(a, dtype=a.dtype); np.mean(a)
np.mean(a, axis=0); np.var(a, axis=0); np.std(a); np.median(a); np.ptp(a); np.percentile(a, 50)
np.quantile(a, .5); np.max(a); np.min(a, axis=0); np.argmax(a, axis=0); np.argmin(a); np.sort(a)
np.argsort(a); np.any(a); np.all(a); np.prod(a); np.cumsum(a); np.cumsum(a, axis=1); np.cumprod(v)
np.diff(a); np.diff(v, n=2); np.diff(a, axis=0); np.diff(v, prepend=0); np.diff(v, append=r); np.diff(v[:1])
np.ediff1d(v); np.gradient(v); np.trapezoid(v); np.average(a); np.average(a, axis=0)
np.average(a, axis=1, weights=r); np.reshape(a, (3, 2)); np.reshape(a, (3, 2), order='F'); np.ravel(a)
np.ravel(a, 'F'); np.transpose(a); np.matrix_transpose(a); np.permute_dims(a, (1, 0)); np.swapaxes(a, 0, 1)
np.moveaxis(a, 0, 1); np.squeeze(a[:, :1]); np.squeeze(a[None, 0]); np.expand_dims(v, 0)
np.expand_dims(v, 1); np.atleast_1d(t); np.atleast_2d(v); np.broadcast_to(v, (2, 3))
np.broadcast_arrays(a, v); np.meshgrid(v, w); np.flip(a); np.flip(a, 0); np.flipud(a); np.fliplr(a)
np.rot90(a); np.rot90(a, 2); np.rot90(a, -1); np.roll(a, 1); np.roll(a, 1, axis=1)
np.roll(a, (1, 2), (0, 1)); np.tile(v, 2); np.tile(a, (2, 2)); np.tile(t, 2); np.tile(v, (2, 1))
np.repeat(v, 2); np.repeat(a, 2, axis=1); np.repeat(a, [1, 2], axis=0); np.take(a, [1, 0], axis=0)
np.take(v, 1); np.delete(a, 0, axis=0); np.delete(v, [0, 2]); np.insert(v, 1, 0)
np.compress([True, False], a, axis=0); np.resize(a, (2, 2)); np.choose([0, 1, 0], [v, w]); np.append(v, w)
np.append(a, b, axis=0); np.concatenate([a, b]); np.concatenate([a, P], axis=1)
np.concatenate([a, b], axis=None); np.concatenate([a[:0], a]); np.stack([v, w]); np.stack([v, w], axis=1)
np.stack([t, t]); np.vstack([a, v]); np.hstack([a, b]); np.hstack([v, w]); np.column_stack([v, w])
np.column_stack([a, b]); np.dstack([v, w]); np.block([[s, s], [s, s]]); np.block([v, w]); np.pad(v, 1)
np.pad(a, ((1, 0), (0, 2))); np.pad(v, 1, constant_values=2); np.pad(v, 1, mode='edge')
np.pad(v, 2, mode='reflect'); np.split(v, 3); np.split(a, [1], axis=1); np.array_split(v, 2)
np.vsplit(a, 2); np.hsplit(a, 3); np.unstack(a); np.tril(s); np.triu(s); np.tril(a, -1); np.triu(a, 1)
np.tril(v); np.diag(s); np.diag(v); np.diag(v, 1); np.diag(a, 1); np.diagonal(a); np.diagonal(a, 1)
np.trace(s); np.trace(a, 1); np.inner(v, w); np.inner(a, b); np.outer(v, w); np.outer(v, r); np.vdot(v, w)
np.vecdot(a, b); np.vecdot(v, r); np.matvec(a, v); np.vecmat(v, a.T); np.tensordot(v, w, 1)
np.tensordot(a, b, 2); np.tensordot(a, b, ([1], [1])); np.tensordot(v, w, 0); np.kron(v, w); np.cross(v, w)
np.einsum('ij,j', a, v); np.convolve(v, r); np.convolve(v, w); np.convolve(v, r[:2], 'same')
np.convolve(r, v, 'valid'); np.correlate(v, r); np.correlate(v, r[:2]); np.correlate(v, w, 'full')
np.polyval([1, 0, 2], v); np.isin(v, r); np.cov(a); np.corrcoef(a); np.unique(v); np.nonzero(v)
np.count_nonzero(v); np.searchsorted(v, r); np.digitize(v, r); np.histogram(v); np.interp(v, r, r)
np.allclose(a, b); np.array_equal(a, b); np.isclose(a, b); np.fft.fft(v); np.apply_along_axis(sum, 0, a)
np.zeros_like(a); np.ones_like(a); np.full_like(a, 3); np.empty_like(a).shape; np.copy(a); np.shape(a)
np.ndim(a); np.size(a); np.array([v, w]); np.asarray(a); np.sum([v, w]); np.linalg.matmul(s, s)
np.linalg.matrix_power(s, 2); np.linalg.matrix_power(s, 0); np.linalg.multi_dot([s, s, v])
np.linalg.norm(v); np.linalg.inv(s); np.linalg.det(s); np.linalg.solve(s, v[:2]); np.linalg.trace(s)
np.linalg.diagonal(s); np.linalg.outer(v, w); np.linalg.vecdot(v, w); np.linalg.tensordot(v, w, 1)
np.linalg.matrix_transpose(a); np.linalg.svd(s); put(a, 0, 1); put(a, (slice(None), 1), 7); put(a, P > 3, 0)
put(a, 1, v); put(v, slice(1), w[:1]); put(a, slice(0, 0), 1); put(a, (1, 2), v[0]); put(a, ..., b)
put(s, 0, r); put(a, (slice(None), slice(None, None, 2)), s); put(a, [0, 1], 3); put(v, -1, 5); put(v, 7, 1)
np.cumulative_sum(v); np.cumulative_sum(a, axis=1); np.concat([v, w]); np.result_type(a, b)
np.astype(a, a.dtype); np.mean(t, axis=0); np.sum(t, axis=-1)
"""
TEXTS = [text.strip() for line in SPELLINGS.strip().splitlines() for text in line.split(";")]
# Products of 64-bit integers, which take seconds here: test_bits_numpy.py has them.
LONG = {
    "a.prod()",
    "a.cumprod()",
    "np.prod(a)",
    "np.cumprod(v)",
    "np.multiply.reduce(a)",
    "np.polyval([1, 0, 2], v)",
}
# Floats in NumPy before 2.1.
ROUNDED = ("np.floor(a)", "np.ceil(a)", "np.trunc(a)")
# How many have to be right, of each kind; the others are refused.
LEAST = {"context": 262, "plan": 257, "integers": 287}

rng = np.random.default_rng(27)
REALS = {
    name: rng.uniform(0.2, 0.9, shape) for name, shape in {"a": (2, 3), "b": (2, 3), "s": (2, 2)}.items()
}
REALS |= {"v": rng.uniform(0.2, 0.9, 3), "w": rng.uniform(0.2, 0.9, 3)}
WHOLE = {name: rng.integers(1, 9, x.shape).astype(np.int8) for name, x in REALS.items()}
Values = dict[str, Any]
Shown = dict[type[Any], Callable[[Any], Any]]


def known(kind: type[Any]) -> Values:
    """The plain operands, of numbers or integers."""
    plain = {"P": np.arange(1, 7).reshape(2, 3), "r": np.array([1, 2, 3])}
    mask = {"mask": np.arange(6).reshape(2, 3) % 2 == 0, "v_mask": np.array([True, False, True])}
    return {"np": np, "put": put, **{name: x.astype(kind) for name, x in plain.items()}, **mask}


def copied(given: Values) -> Values:
    """The same for a spelling that changes what it is given."""
    changed = (np.ndarray, sd.EncryptedBits)
    return {name: x.copy() if isinstance(x, changed) else x for name, x in given.items()}


def evaluated(text: str, given: Values) -> Any:
    """What a spelling gives; t is the first element of v."""
    names = {**given, "t": given["v"][0]} if "v" in given else given
    return eval(text, {"__builtins__": __builtins__, **names})


def parts(x: Any) -> list[Any]:
    """A result, or each of several."""
    return list(x) if isinstance(x, (list, tuple)) and not np.isscalar(x) else [x]


def refused(error: Exception, wanted: Any) -> bool:
    """Whether a refusal is of ours and says what to do, or what NumPy refuses as well."""
    if isinstance(wanted, Exception):
        return isinstance(error, (sd.SudareError, ValueError, TypeError, IndexError))
    remedies = (";", "write", "decrypt", "convert")
    return isinstance(error, sd.SudareError) and any(word in str(error) for word in remedies)


def in_a_context() -> Iterator[tuple[str, Values, Callable[[str], Any]]]:
    ctx = sd.context(depth=3, tile=4, security="insecure", threads=1)
    given = known(np.float64) | {name: ctx.encrypt(x, max_abs=1) for name, x in REALS.items()}
    shown: Shown = {sd.Encrypted: ctx.decrypt}
    for text in TEXTS:
        yield text, known(np.float64) | REALS, lambda text: opened(evaluated(text, given), shown)


def in_integers() -> Iterator[tuple[str, Values, Callable[[str], Any]]]:
    ctx = sd.bits(parameters="insecure_test", threads=1)
    given = known(np.int8) | {name: ctx.encrypt(x) for name, x in WHOLE.items()}
    shown: Shown = {sd.EncryptedBits: ctx.decrypt}
    for text in TEXTS:
        if text not in LONG:
            yield text, known(np.int8) | WHOLE, lambda text: opened(evaluated(text, copied(given)), shown)


def in_a_plan() -> Iterator[tuple[str, Values, Callable[[str], Any]]]:
    for text in TEXTS:
        yield text, known(np.float64) | REALS, planned


def planned(text: str) -> Any:
    """Each part of what a spelling gives, by a plan of its own."""
    names = [n for n in REALS if n in compile(text, "", "eval").co_names or (n == "v" and "t" in text)]
    names = [n for n in names if n in compile(text, "", "eval").co_names] or ["v"]
    seen: list[Any] = []

    def function(at: int) -> Callable[..., Any]:
        def f(**given: Any) -> Any:
            seen[:] = parts(evaluated(text, known(np.float64) | given))
            return seen[at]

        return f

    found, at = list[Any](), 0
    while at == 0 or at < len(seen):
        specs: Any = {name: sd.spec(REALS[name].shape) for name in names}
        try:
            plan = sd.plan(function(at), error=1e-2, security="insecure", **specs)
        except sd.PlanError:
            if not seen or isinstance(seen[at], Expression):
                raise
            found.append(seen[at])
        else:
            client = plan.client(threads=1)
            client.server()
            given = {name: client.encrypt(REALS[name], name) for name in names}
            found.append(client.decrypt(function(at)(**given)))
        at += 1
    return found


def same(x: Any, y: Any, typed: bool) -> bool:
    """Whether a value is NumPy's, in shape and about in value; of integers in type as well."""
    if y is None or isinstance(y, np.dtype):
        return bool(x == y)
    types = not typed or np.asarray(x).dtype == np.asarray(y).dtype
    return types and np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=0, atol=1e-2)


def opened(x: Any, shown: Shown) -> list[Any]:
    return [shown[type(part)](part) if type(part) in shown else part for part in parts(x)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "table"), [("context", in_a_context), ("plan", in_a_plan), ("integers", in_integers)]
)
def test_spellings(
    kind: str, table: Callable[[], Iterator[tuple[str, Values, Callable[[str], Any]]]]
) -> None:
    right, wrong, absent = list[str](), list[str](), 0
    for text, values, compute in table():
        try:
            wanted = evaluated(text, copied(values))
        except Exception as error:
            wanted = error
        if isinstance(wanted, AttributeError):
            # An older NumPy does not have it.
            absent += 1
            continue
        try:
            found = compute(text)
        except Exception as error:
            if not refused(error, wanted):
                wrong.append(f"{text}: {type(error).__name__}: {error}")
            continue
        if isinstance(wanted, Exception):
            wrong.append(f"{text}: NumPy refuses it: {wanted}")
            continue
        pairs = list(zip(found, parts(wanted), strict=True))
        typed = kind == "integers" and text not in ROUNDED
        alike = all(same(x, y, typed) for x, y in pairs)
        (right if alike else wrong).append(text if alike else f"{text}: {found} for {wanted}")
    print(f"{kind}: {len(right)} right of {len(TEXTS)}, {len(wrong)} wrong")
    assert not wrong, "\n".join(wrong)
    assert len(TEXTS) >= 243
    assert len(right) >= LEAST[kind] - absent, f"{len(right)} of {len(TEXTS)}"
