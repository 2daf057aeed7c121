"""1. Basics: parameters, keys, one sum and one product that the server cannot read.

Run with `python python/examples/1_basics.py`. In Rust it is the example 1_basics of sudare-he.
"""

import numpy as np
from sudare import ckks

# Parameters follow from what is wanted: one product in a row, a scale of 2^40, 128 bits of security.
params = ckks.Params.with_depth(1, 40, security=128)
print(f"N = {params.degree}, log2(Q·P) = {params.log_qp:.0f} bits, {params.slots} slots")

# The client's side: a secret key, and from it what the server needs to multiply.
secret = ckks.SecretKey.generate(params)
keys = ckks.KeyGenerator(secret).eval_keys(params.max_level)

# A ciphertext holds a whole vector, one value per slot. `1.0` bounds the values: a bound travels openly with
# the ciphertext, so that overflow is refused before it happens.
encoder = ckks.Encoder(params)
encryptor = ckks.Encryptor.with_secret_key(secret)
x, y = np.array([0.5, -0.25, 0.125]), np.array([1.0, 0.5, -1.0])
a = encryptor.encrypt(encoder.encode(x, 1.0))
b = encryptor.encrypt(encoder.encode(y, 1.0))

# The server's side: evaluation keys and ciphertexts, no secret. A product of two ciphertexts has three parts
# and a squared scale; `mul_rescale` brings both back.
server = ckks.Evaluator(params, keys)
total = server.add(a, b)
product = server.mul_rescale(a, b)
print(f"sum:     {total}")
print(f"product: {product}")

# Back at the client. Errors are small, and never above the bound that travelled along.
decryptor = ckks.Decryptor(secret)
sums = encoder.decode(decryptor.decrypt(total))[: len(x)]
products = encoder.decode(decryptor.decrypt(product))[: len(x)]
for p, q, s, m in zip(x, y, sums, products, strict=True):
    print(f"{p} + {q} = {s:.9f}    {p} · {q} = {m:.9f}")
assert np.abs(sums - (x + y)).max() <= total.error_bound
assert np.abs(products - x * y).max() <= product.error_bound
assert product.error_bound < 1e-6
