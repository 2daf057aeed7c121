"""BFV: exact arithmetic modulo t by scale-invariant products, with keys and ciphertexts of one's own.

The names are those of the Rust crates `sudare-exact` and `sudare-rlwe`. Brakerski, CRYPTO 2012; Fan and
Vercauteren, ePrint 2012/144; in residue number systems ePrint 2018/117 and 2021/204.

>>> from sudare import bfv
>>> params = bfv.Requirements(65537, depth=1, slots=True).bfv()
>>> secret = bfv.SecretKey.generate(params)
>>> keys = bfv.KeyGenerator(secret).eval_keys(params.max_level)
>>> encoder, encryptor = bfv.Encoder(params), bfv.Encryptor.with_secret_key(params, secret)
>>> x = encryptor.encrypt(encoder.encode_signed([3, -4, 5]))
>>> y = bfv.Evaluator(params, keys).mul_relin(x, x)
>>> encoder.decode_signed(bfv.Decryptor(params, secret).decrypt(y))[:4].tolist()
[9, 16, 25, 0]
"""

from . import _exact
from ._core import BfvCiphertext as Ciphertext
from ._core import BfvDecryptor as Decryptor
from ._core import BfvEncryptor as Encryptor
from ._core import BfvEvaluator as Evaluator
from ._core import BfvExchange as Exchange
from ._core import BfvRefresher as Refresher
from ._exact import *  # noqa: F403 (names are listed there)

__all__ = ["Ciphertext", "Decryptor", "Encryptor", "Evaluator", "Exchange", "Refresher"]
__all__ += _exact.__all__
