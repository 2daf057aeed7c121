#!/usr/bin/env python3
"""A lower bound for dual hybrid attacks on LWE with a sparse ternary secret.

The attack (Albrecht, ePrint 2017/047; Cheon, Hhan, Hong, Son, 2019/1114; Espitau, Joux, Kharchenko, 2020/515)
guesses ζ coordinates of the secret, at most h_1 of them ±1, and takes short dual vectors of the other n − ζ.
Each gives a sample ⟨v, b⟩ whose error is Gaussian of deviation σ_v; exp(4π²σ_v²/q²)·ln(guesses) of them tell a
right guess from wrong ones. It is run again with other coordinates until at most h_1 of the h are among the ζ.

The bound takes the guessing far too cheap: √guesses operations, or one a sample where those are more, for all
guesses and samples together, and no guess lost to the error, as if a meeting in the middle always met. The cost
of reduction and of many short vectors is RC.MATZOV's (Guo, Johansson, Asiacrypt 2021; MATZOV, 2022), as the
lattice estimator has it.

`python3 scripts/dual_bound.py 65536 96 28` shows a bound, for n, log2 q and the weight; with `--one-by-one`
the attack that tries all guesses.
"""

import math
import sys
from functools import lru_cache

# RC.MATZOV: 2^(a·β' + b) for a sieve in dimension β', in the list-decoding model.
A, B = 0.29613500308205365, 20.387885985467914
C = 1 / (1 - 2**-A)
# Most vectors of a sieve: (4/3)^(d/2).
SATURATION = math.log2(4 / 3) / 2


def log2_sum(x, y):
    """log2(2^x + 2^y)."""
    x, y = max(x, y), min(x, y)
    return x + math.log1p(2.0 ** (y - x)) / math.log(2)


@lru_cache(None)
def log_delta(beta):
    """Logarithm of the root Hermite factor (Chen 2013)."""
    return (math.log(beta / (2 * math.pi * math.e)) + math.log(math.pi * beta) / beta) / (2 * (beta - 1))


def free(beta):
    """Dimensions for free (Ducas 2018)."""
    return max(beta * math.log(4 / 3) / math.log(beta / (2 * math.pi * math.e)), 0.0)


def reduction(beta, d):
    """log2 of the cost of BKZ-β in dimension d, after LLL."""
    return log2_sum(
        3 * math.log2(d), math.log2(C * max(d - beta, 1)) + math.log2(C) + A * (beta - free(beta)) + B
    )


def vectors(beta, d, log_count):
    """log2 of the cost of 2^log_count short vectors: a reduction and a sieve, as often as it takes."""
    own = beta - math.floor(free(beta))
    sieve = own if beta >= d else min(d, math.floor(own + math.log2((d - beta) * C) / A))
    return max(0.0, log_count - SATURATION * sieve) + log2_sum(
        reduction(beta, d), math.log2(C) + A * sieve + B
    )


def log_binomial(n, k):
    """Logarithm of n over k."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@lru_cache(None)
def guesses(n, weight, zeta, most):
    """Logarithm of the number of guesses, and of the probability that one is right."""
    if zeta == 0:
        return 0.0, 0.0
    terms = [w for w in range(most + 1) if w <= zeta and weight - w <= n - zeta]
    size = [log_binomial(zeta, w) + w * math.log(2) for w in terms]
    right = [
        log_binomial(weight, w) + log_binomial(n - weight, zeta - w) - log_binomial(n, zeta) for w in terms
    ]

    def total(logs):
        top = max(logs)
        return top + math.log(math.fsum(math.exp(x - top) for x in logs))

    return total(size), min(0.0, total(right))


def cost(n, log_q, weight, sigma, beta, zeta, most, one_by_one=False):
    """log2 of the cost with these choices; infinite where they make no sense."""
    rest = n - zeta
    if weight - most < 1 or rest <= weight:
        return math.inf
    # The other part of the secret has weight h − h_1 or more; scaled to the size of the error.
    log_volume = log_q * math.log(2) + math.log(math.sqrt((weight - most) / rest) / sigma)
    delta = log_delta(beta)
    d = min(max(rest + 1, beta + 1, round(math.sqrt(rest * log_volume / delta))), 2 * n)
    log_error = math.log(sigma) + rest / d * log_volume + 0.5 * math.log(4 / 3)
    log_error += 0.5 * math.log(beta / (2 * math.pi * math.e)) + delta * (d - beta)
    x = log_error + math.log(math.pi) - log_q * math.log(2)
    if x > 3:
        return math.inf
    size, right = guesses(n, weight, zeta, most)
    log_count = (4 * math.exp(2 * x) + math.log(size + math.log(2))) / math.log(2)
    size /= math.log(2)
    tried = size + log_count if one_by_one else max(size / 2, log_count)
    return log2_sum(vectors(beta, d, log_count), tried) - right / math.log(2)


def least(n, log_q, weight, sigma=3.19, one_by_one=False):
    """log2 of the least cost over all choices: a grid, refined around its best point."""

    def at(choice):
        return cost(n, log_q, weight, sigma, *choice, one_by_one)

    rests = sorted({round(n * 2 ** (-k / 16)) for k in range(128)})
    grid = ((b, n - r, h) for r in rests for h in range(0, weight, 2) for b in range(60, 700, 20))
    best = min(grid, key=at)
    step = (16, max(1, (n - best[1]) // 16), 1)
    while True:
        near = (
            (best[0] + i * step[0], best[1] + j * step[1], best[2] + k)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            for k in (-1, 0, 1)
        )
        found = min((c for c in near if c[0] >= 60 and 0 <= c[1] < n and c[2] >= 0), key=at)
        if at(found) < at(best) - 1e-9:
            best = found
        elif step[:2] == (1, 1):
            return at(best)
        else:
            step = (max(1, step[0] // 2), max(1, step[1] // 2), 1)


if __name__ == "__main__":
    one_by_one = "--one-by-one" in sys.argv
    n, log_q, weight = [float(x) for x in sys.argv[1:] if not x.startswith("--")]
    print(f"{least(int(n), log_q, int(weight), one_by_one=one_by_one):.2f}")
