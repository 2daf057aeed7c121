"""What `sudare.bfv` and `sudare.bgv` share: keys, parameters and plaintexts."""

from ._core import (
    EvalKeys,
    IntegerParams,
    KeyGenerator,
    PublicKey,
    RefreshKeys,
    RefreshParams,
    Requirements,
    SecretKey,
    slot_modulus,
)
from ._core import IntegerEncoder as Encoder
from ._core import IntegerPlaintext as Plaintext

__all__ = [
    "Encoder",
    "EvalKeys",
    "IntegerParams",
    "KeyGenerator",
    "Plaintext",
    "PublicKey",
    "RefreshKeys",
    "RefreshParams",
    "Requirements",
    "SecretKey",
    "slot_modulus",
]
