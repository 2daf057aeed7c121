"""4. Release: results that others will see.

Whoever sees a ciphertext of this scheme *and* its exact decryption can compute the secret key (Li–Micciancio,
ePrint 2020/1533). So there are two decryptions: a private one for the key's owner, and one for release, which
adds noise that hides the error. How much follows from what the computation can do to the error, which the
owner works out: a ciphertext from a server says what the server wrote.

Run with `python python/examples/4_release.py`. In Rust it is the example 4_release of sudare-he.
"""

import numpy as np
import sudare as sd
from sudare import ckks

# Hiding an error takes room above it: a scale of 2^55 where 2^40 would do in private.
params = ckks.Params(log_n=14, q_bits=[61, 61, 55], p_bits=[61], log_scale=55, secret="ternary", security=128)
secret = ckks.SecretKey.generate(params)
server = ckks.Evaluator(params, ckks.KeyGenerator(secret).eval_keys(params.max_level))
encoder = ckks.Encoder(params)
salaries = np.array([0.31, 0.47, 0.22, 0.58])
x = ckks.Encryptor.with_secret_key(secret).encrypt(encoder.encode(salaries, 1.0))
squares = server.mul_rescale(x, x)

decryptor = ckks.Decryptor(secret)
private = encoder.decode(decryptor.decrypt(squares))[: len(salaries)]

# The owner knows what was asked for, x·x relinearised and rescaled, and so its level, its scale and how wrong
# it can be: values of up to one with errors of x.noise, then what the steps add.
top = params.max_level
prime = params.prime_at(top)
scale = params.scale * params.scale / prime
product = 2 * params.scale * x.noise + x.noise**2 + ckks.switching_bound(params, top)
error = (product / prime + ckks.division_bound(params, 2)) / scale
expected = ckks.Expected(level=top - 1, scale=scale, error=error)

# Two results will be shown under this key, each with 30 bits of statistical security.
policy = ckks.ReleasePolicy(2, 30)
first, second = (
    decryptor.decrypt_for_release(encoder, squares, expected, policy)[: len(salaries)] for _ in range(2)
)
promised = policy.released_error(params.slots, expected.error)
print(f"released values are within {promised:.1e}")
exact = salaries**2
for e, p, a, b in zip(exact, private, first, second, strict=True):
    print(f"{e:.6f}: private {p:.9f}, released {a:.9f} and {b:.9f}")
assert np.abs(private - exact).max() < expected.error
assert np.abs(first - exact).max() < promised
assert np.abs(second - exact).max() < promised
# The noise is fresh each time, and far above the error that it hides.
assert (np.abs(first - second) > 10 * np.abs(private - exact)).all()

# A third is not covered by what was declared: the count is the key's, and its file keeps it.
try:
    decryptor.decrypt_for_release(encoder, squares, expected, policy)
    raise SystemExit("a third release has to be refused")
except sd.ReleaseError as refused:
    print(f"refused: {refused}")
