"""BGV: exact arithmetic modulo t by modulus switching, with keys and ciphertexts of one's own.

The names are those of the Rust crates `sudare-exact` and `sudare-rlwe`. Brakerski, Gentry and Vaikuntanathan,
ePrint 2011/277; with plaintext factors in residue number systems ePrint 2012/099 and 2021/204.

>>> from sudare import bgv
>>> params = bgv.Requirements(65537, depth=1, slots=True).bgv()
>>> secret = bgv.SecretKey.generate(params)
>>> keys = bgv.KeyGenerator(secret).eval_keys(params.max_level)
>>> encoder, encryptor = bgv.Encoder(params), bgv.Encryptor.with_secret_key(params, secret)
>>> x = encryptor.encrypt(encoder.encode_signed([3, -4, 5]))
>>> y = bgv.Evaluator(params, keys).mul_relin(x, x)
>>> encoder.decode_signed(bgv.Decryptor(params, secret).decrypt(y))[:4].tolist()
[9, 16, 25, 0]
"""

from . import _exact
from ._core import BgvCiphertext as Ciphertext
from ._core import BgvDecryptor as Decryptor
from ._core import BgvEncryptor as Encryptor
from ._core import BgvEvaluator as Evaluator
from ._core import BgvExchange as Exchange
from ._core import BgvRefresher as Refresher
from ._exact import *  # noqa: F403 (names are listed there)

__all__ = ["Ciphertext", "Decryptor", "Encryptor", "Evaluator", "Exchange", "Refresher"]
__all__ += _exact.__all__
