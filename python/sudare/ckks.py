"""CKKS: approximate arithmetic on vectors of complex numbers, with keys and ciphertexts of one's own.

The names are those of the Rust crates `sudare-he` and `sudare-rlwe`. Cheon, Kim, Kim and Song, Asiacrypt
2017; in residue number systems ePrint 2018/931.

>>> from sudare import ckks
>>> params = ckks.Params.with_depth(1, 40)
>>> secret = ckks.SecretKey.generate(params)
>>> keys = ckks.KeyGenerator(secret).eval_keys(params.max_level, steps=[1])
>>> encoder, encryptor = ckks.Encoder(params), ckks.Encryptor.with_secret_key(secret)
>>> x = encryptor.encrypt(encoder.encode([0.5, -0.25], 1.0))
>>> server = ckks.Evaluator(params, keys)
>>> y = server.rotate(server.mul_rescale(x, x), 1)
>>> bool(abs(encoder.decode(ckks.Decryptor(secret).decrypt(y))[0] - 0.0625) < 1e-6)
True
"""

from ._core import CkksBootstrapKeys as BootstrapKeys
from ._core import CkksBootstrapParams as BootstrapParams
from ._core import CkksBootstrapper as Bootstrapper
from ._core import CkksCiphertext as Ciphertext
from ._core import CkksDecryptor as Decryptor
from ._core import CkksEncoder as Encoder
from ._core import CkksEncryptor as Encryptor
from ._core import CkksEvaluator as Evaluator
from ._core import CkksExchange as Exchange
from ._core import CkksExpected as Expected
from ._core import CkksLinearMap as LinearMap
from ._core import CkksMatrixVector as MatrixVector
from ._core import CkksParams as Params
from ._core import CkksPlaintext as Plaintext
from ._core import CkksPolynomial as Polynomial
from ._core import CkksPolynomialCircuit as PolynomialCircuit
from ._core import CkksTraceFunction as TraceFunction
from ._core import CkksTracePlan as TracePlan
from ._core import (
    EvalKeys,
    KeyGenerator,
    PublicKey,
    SecretKey,
    division_bound,
    relinearisation_bound,
    switched_bound,
    switching_bound,
)
from ._core import Release as ReleasePolicy

__all__ = [
    "BootstrapKeys",
    "BootstrapParams",
    "Bootstrapper",
    "Ciphertext",
    "Decryptor",
    "Encoder",
    "Encryptor",
    "EvalKeys",
    "Evaluator",
    "Exchange",
    "Expected",
    "KeyGenerator",
    "LinearMap",
    "MatrixVector",
    "Params",
    "Plaintext",
    "Polynomial",
    "PolynomialCircuit",
    "PublicKey",
    "ReleasePolicy",
    "SecretKey",
    "TraceFunction",
    "TracePlan",
    "division_bound",
    "relinearisation_bound",
    "switched_bound",
    "switching_bound",
]
