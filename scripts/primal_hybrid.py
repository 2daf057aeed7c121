#!/usr/bin/env python3
"""The primal hybrid attack on Ring-LWE with a sparse ternary secret, with a meeting in the middle and rotations.

The attack (Howgrave-Graham, Crypto 2007) guesses ζ coordinates of the secret, at most w of them ±1, and finds the other
coordinates and the error by Babai's algorithm in one reduced lattice. A meeting in the middle takes the square root of
the number of guesses, and meets with the probability of Son and Cheon (ePrint 2019/1019). The attack is repeated
until it succeeds with 0.99; reduction costs what RC.MATZOV says (`dual_bound.reduction`). Numbers are doubles, so that
no Sage is needed.

With rotations (ePrint 2026/279, 2026/366): a sample (a, b) of a ring gives N others with the same a, hence the same
reduced lattice. N times as many guesses are tried in it, and one of N rotations has to have few coordinates ±1 among
the ζ: 1 − (1 − p)^N. The guesses of all rotations meet for the square root of their number. Without rotations it gives what
the lattice estimator gives (`primal_hybrid` with `mitm` and `babai`), less up to 0.1 bit, since w and the dimension are free.

`python3 scripts/primal_hybrid.py 65536 96 28` shows log2 of the cost, for n, log2 q and the weight; with
`--no-rotations` that of general LWE.
"""

import argparse
import math
from functools import lru_cache

from dual_bound import log2_sum, log_binomial, log_delta, one_of, reduction

# How sure the whole attack is to succeed.
TARGET = 0.99


def log_sum(x, y):
    """ln(e^x + e^y)."""
    x, y = max(x, y), min(x, y)
    return x if y == -math.inf else x + math.log1p(math.exp(y - x))


@lru_cache(None)
def guesses(n, weight, zeta):
    """Logarithms of the number of guesses and of the probability that one is right, for each w."""
    if zeta == 0:
        return [(0.0, 0.0)]
    out, size, right = [], -math.inf, -math.inf
    for w in range(min(weight, zeta)):
        if weight - w > n - zeta:
            continue
        size = log_sum(size, log_binomial(zeta, w) + w * math.log(2))
        chosen = log_binomial(weight, w) + log_binomial(n - weight, zeta - w)
        right = log_sum(right, chosen - log_binomial(n, zeta))
        out.append((size, min(0.0, right)))
    return out


def log_found(d, log_volume, delta, sigma, meets):
    """Logarithm of the probability that Babai's algorithm finds the error, and that a meeting in the middle meets."""
    total = 0.0
    for i in reversed(range(d)):
        # Gram–Schmidt lengths by the geometric series; those that are far over the error change nothing.
        length = math.exp(log_volume / d + delta * (d - 1 - 2 * i))
        if length > 3000 * sigma:
            break
        factor = math.erf(length / (2 * math.sqrt(2) * sigma))
        if meets:
            x = length / (math.sqrt(2) * sigma)
            factor *= math.erf(x) + (math.exp(-x) - 1) / (math.sqrt(math.pi) * x)
        if factor <= 0:
            return -math.inf
        total += math.log(factor)
    return total


def repeats(log_p):
    """log2 of how often an attack of this probability is made until it succeeds."""
    p = math.exp(log_p)
    if p >= TARGET:
        return 0.0
    once = -math.log1p(-p) if p > 1e-15 else 0.0
    return math.log2(-math.log(1 - TARGET)) - (math.log2(once) if once else log_p / math.log(2))


def cost(n, log_q, weight, sigma, beta, zeta, part, rotations):
    """log2 of the cost with these choices, `part` the dimension in thousandths of the best for one short vector."""
    rest = n - zeta
    if beta < 60 or zeta < 0 or rest <= weight:
        return math.inf
    # The secret is scaled to the size of the error.
    scale = math.log(sigma / math.sqrt(weight / n))
    delta = log_delta(beta)
    d = max(rest + 1, round(math.sqrt(rest * (log_q * math.log(2) - scale) / delta) * part / 1000))
    if d < beta:
        return math.inf
    log_volume = (d - rest) * log_q * math.log(2) + rest * scale
    found = log_found(d, log_volume, delta, sigma, zeta > 0)
    if found == -math.inf:
        return math.inf
    tried = rotations if zeta else 1
    reduced = reduction(beta, d)
    return min(
        log2_sum(reduced, 2 * math.log2(d) + (size + math.log(tried)) / 2 / math.log(2))
        + max(0.0, repeats(one_of(right, tried) + found))
        for size, right in guesses(n, weight, zeta)
    )


def least(n, log_q, weight, sigma=3.19, rotations=True):
    """log2 of the least cost over all choices: a grid, refined around its best point.

    n is the degree of the ring, or with `rotations=False` the dimension of general LWE.
    """

    def at(choice):
        return cost(n, log_q, weight, sigma, *choice, n if rotations else 1)

    rests = sorted({round(n * 2 ** (-k / 8)) for k in range(64)})
    best = min(((b, n - r, p) for b in range(60, 500, 20) for r in rests for p in (1000, 700, 500)), key=at)
    step = (16, max(1, (n - best[1]) // 16), 100)
    while True:
        moves = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]
        found = min((tuple(c + m * s for c, m, s in zip(best, move, step, strict=True)) for move in moves), key=at)
        if at(found) < at(best) - 1e-9:
            best = found
        elif step == (1, 1, 1):
            return at(best)
        else:
            step = tuple(max(1, s // 2) for s in step)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, help="degree of the ring, or dimension of general LWE")
    parser.add_argument("log_q", type=float, help="log2 of the modulus")
    parser.add_argument("weight", type=int, help="coefficients of the secret that are not zero")
    parser.add_argument(
        "--no-rotations", action="store_true", help="general LWE: no sample's rotations are guessed"
    )
    of = parser.parse_args()
    print(f"{least(of.n, of.log_q, of.weight, rotations=not of.no_rotations):.2f}")
