"""2. Levels and scales: x³ + 0.5·x, and what is refused on the way.

Run with `python python/examples/2_levels_and_scales.py`. In Rust it is the example 2_levels_and_scales of
sudare-he.
"""

import math

import numpy as np
import sudare as sd
from sudare import ckks

params = ckks.Params.with_depth(2, 40, security=128)
secret = ckks.SecretKey.generate(params)
server = ckks.Evaluator(params, ckks.KeyGenerator(secret).eval_keys(params.max_level))
encoder = ckks.Encoder(params)
values = np.arange(8) / 8
x = ckks.Encryptor.with_secret_key(secret).encrypt(encoder.encode(values, 1.0))

# A fresh ciphertext is at the top level. Each product multiplies the scales, and the rescale after it divides
# by one prime: the level goes down by one.
assert x.level == 2
square = server.mul_rescale(x, x)
assert square.level == 1
print(f"x²: level {square.level}, scale 2^{math.log2(square.scale):.6f}")

# Primes are only near the scale, so scales drift. They are tracked exactly, and a sum of two that differ is
# refused with both of them in the error, not computed a little wrong.
cube = server.mul_rescale(square, server.drop_to(x, 1))
half = server.mul_constant(x, 0.5)
try:
    server.add(cube, half)
    raise SystemExit("a sum at two scales has to be refused")
except sd.PrecisionError as error:
    print(f"refused: {error}")

# The remedy that the error names: bring one to the scale of the other.
half = server.set_scale(half, cube.scale)
result = server.add(cube, half)
print(f"x³ + 0.5·x: {result}")

# No level is left for another product; that too is said before anything is computed.
assert result.level == 0
try:
    server.mul_rescale(result, result)
    raise SystemExit("a product without a level has to be refused")
except (sd.LevelError, sd.PrecisionError) as error:
    print(f"refused: {error}")

shown = encoder.decode(ckks.Decryptor(secret).decrypt(result))[: len(values)]
assert np.abs(shown - (values**3 + 0.5 * values)).max() <= result.error_bound
print(f"largest error allowed by the static bound: {result.error_bound:.1e}")
