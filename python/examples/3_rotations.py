"""3. Rotations: sums over slots, with exactly the keys that they need.

Run with `python python/examples/3_rotations.py`. In Rust it is the example 3_rotations of sudare-he.
"""

import numpy as np
import sudare as sd
from sudare import ckks

params = ckks.Params.with_depth(1, 40, security=128)
secret = ckks.SecretKey.generate(params)

# Each rotation step needs a key of its own, and only the ones asked for are made.
keys = ckks.KeyGenerator(secret).eval_keys(params.max_level, steps=[1, 2, 3, 4, 8])
server = ckks.Evaluator(params, keys)

encoder = ckks.Encoder(params)
values = np.sin(np.arange(params.slots) * 0.01)
x = ckks.Encryptor.with_secret_key(secret).encrypt(encoder.encode(values, 1.0))
decryptor = ckks.Decryptor(secret)

# Slot i of the result is slot i + 3 of the operand; slots wrap around.
turned = server.rotate(x, 3)
shown = encoder.decode(decryptor.decrypt(turned))
assert np.abs(shown - np.roll(values, -3)).max() <= turned.error_bound

# Many rotations of one ciphertext share the dear half of their work (hoisting).
many = server.rotate_many(x, [1, 2, 3])
assert len(many) == 3

# A logarithmic fold: after rotations by 8, 4, 2, 1 each slot holds a sum of 16.
total = x
for step in [8, 4, 2, 1]:
    total = server.add(total, server.rotate(total, step))
shown = encoder.decode(decryptor.decrypt(total))
assert np.abs(shown - sum(np.roll(values, -k) for k in range(16))).max() <= total.error_bound
print(f"sums of 16 neighbours: {total}")

# A step without a key is refused by its name.
try:
    server.rotate(x, 5)
    raise SystemExit("a rotation without a key has to be refused")
except sd.MissingKeyError as error:
    refused = str(error)
assert "rotation by 5" in refused
print(f"refused: {refused}")
