#!/usr/bin/env python3
"""A lower bound for dual hybrid attacks on Ring-LWE with a sparse ternary secret.

The attack (Albrecht, ePrint 2017/047; Cheon, Hhan, Hong, Son, 2019/1114; Espitau, Joux, Kharchenko, 2020/515)
guesses ζ coordinates of the secret, at most h_1 of them ±1, and takes short dual vectors of the other n − ζ.
Each gives a sample ⟨v, b⟩ whose error is Gaussian of deviation σ_v; exp(4π²σ_v²/q²)·ln(guesses) of them tell a
right guess from wrong ones. It is run again with other coordinates until at most h_1 of the h are among the ζ.

In a ring Z[X]/(X^N + 1) a sample (a, b) of the secret s gives N others with the same a, hence the same reduced
lattice: X^j·b belongs to X^j·s. An attack that reduces once and guesses the coordinates of all N rotations succeeds with
probability 1 − (1 − p)^N where one guess has p, and has N times as many guesses. A meeting in the middle finds them
for the square root of that number: one side's table serves all rotations, the other side is tried N times. Both
heuristics, independent rotations and a table that all of them share, are those of ePrint 2026/279 for the primal
attack (see also 2026/366); for the dual attack they are taken over here.

The bound takes the guessing far too cheap: √guesses operations, or one a sample where those are more, for all
guesses and samples together, and no guess lost to the error, as if a meeting in the middle always met. The cost
of reduction and of many short vectors is RC.MATZOV's (Guo, Johansson, Asiacrypt 2021; MATZOV, 2022), as the
lattice estimator has it.

`python3 scripts/dual_bound.py 65536 96 28` shows a bound, for n, log2 q and the weight; with `--no-rotations` that of
general LWE, with `--one-by-one` the attack that tries all guesses.
"""

import argparse
import math
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


def one_of(log_p, times):
    """Logarithm of the probability that one of so many independent tries of probability p succeeds."""
    p = math.exp(log_p)
    if p in (0.0, 1.0):
        return min(0.0, log_p + math.log(times))
    return math.log(-math.expm1(times * math.log1p(-p)))


@lru_cache(None)
def guesses(n, weight, zeta, most, rotations):
    """Logarithm of the number of guesses, and of the probability that one is right, with so many rotations."""
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

    return total(size) + math.log(rotations), one_of(total(right), rotations)


def cost(n, log_q, weight, sigma, beta, zeta, most, rotations, one_by_one=False):
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
    size, right = guesses(n, weight, zeta, most, rotations)
    log_count = (4 * math.exp(2 * x) + math.log(size + math.log(2))) / math.log(2)
    size /= math.log(2)
    tried = size + log_count if one_by_one else max(size / 2, log_count)
    return log2_sum(vectors(beta, d, log_count), tried) - right / math.log(2)


def least(n, log_q, weight, sigma=3.19, rotations=True, one_by_one=False):
    """log2 of the least cost over all choices: a grid, refined around its best point.

    n is the degree of the ring, or with `rotations=False` the dimension of general LWE.
    """

    def at(choice):
        return cost(n, log_q, weight, sigma, *choice, n if rotations else 1, one_by_one)

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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, help="degree of the ring, or dimension of general LWE")
    parser.add_argument("log_q", type=float, help="log2 of the modulus")
    parser.add_argument("weight", type=int, help="coefficients of the secret that are not zero")
    parser.add_argument(
        "--no-rotations", action="store_true", help="general LWE: no sample's rotations are guessed"
    )
    parser.add_argument("--one-by-one", action="store_true", help="guesses are tried one by one")
    of = parser.parse_args()
    bound = least(of.n, of.log_q, of.weight, rotations=not of.no_rotations, one_by_one=of.one_by_one)
    print(f"{bound:.2f}")
