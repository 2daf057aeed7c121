"""1. Exact integers: votes added and multiplied modulo t, and a product that is refused in time.

Run with `python python/examples/1_integers.py`. In Rust it is the example 1_integers of sudare-exact.
"""

import numpy as np
import sudare as sd
from sudare import bgv

# Two products in a row and sums of ten, modulo a prime with slots.
params = bgv.Requirements(65537, depth=2, additions=9, slots=True).bgv()
print(params)
secret = bgv.SecretKey.generate(params)
top = params.max_level
rotations = [(element, top) for element in params.sum_elements(columns=True)]
keys = bgv.KeyGenerator(secret).eval_keys(top, rotations)

encoder = bgv.Encoder(params)
encryptor = bgv.Encryptor.with_secret_key(params, secret)
decryptor = bgv.Decryptor(params, secret)
i = np.arange(100)
votes = (i % 3 == 0).astype(int) - (i % 7 == 0).astype(int)
x = encryptor.encrypt(encoder.encode_signed(votes, "slots"))

server = bgv.Evaluator(params, keys)
total = server.sum_slots(x, columns=True)
squares = server.sum_slots(server.square(x), columns=True)


def shown(c: bgv.Ciphertext) -> list[int]:
    """The values of a ciphertext."""
    return [int(v) for v in encoder.decode_signed(decryptor.decrypt(c), "slots")]


print(f"sum {shown(total)[0]}, sum of squares {shown(squares)[0]}")
assert shown(total)[0] == votes.sum()
assert shown(squares)[0] == (votes * votes).sum()

# A value that t does not hold is refused, unless wrapping is asked for.
try:
    encoder.encode_signed([40_000], "slots")
    raise SystemExit("a value over t/2 has to be refused")
except sd.InputError as error:
    print(f"refused: {error}")

# So is a product too many, before it could decrypt wrongly.
power = x
while True:
    try:
        power = server.square(power)
    except sd.PrecisionError as error:
        print(f"refused: {error}")
        break
assert shown(power)[3] == 1
