"""TFHE: encrypted bits and small integers, with a bootstrap in every step, with parameters of one's own.

The names are those of the Rust crate `sudare-tfhe`. Chillotti, Gama, Georgieva and Izabachène, ePrint
2018/421.

>>> from sudare import tfhe
>>> params = tfhe.TfheParams("insecure_test")  # without security; "message_2_carry_2" has 128 bits
>>> client = tfhe.ClientKey.generate(params)
>>> server = client.server_key()
>>> square = tfhe.LookupTable(params, [x * x % 16 for x in range(params.space)])
>>> client.decrypt_int(server.lookup(client.encrypt_int(3), square))
9
"""

from ._core import TfheBit as EncryptedBit
from ._core import TfheClientKey as ClientKey
from ._core import TfheInt as EncryptedInt
from ._core import TfheLookupTable as LookupTable
from ._core import TfheParams
from ._core import TfheServerKey as ServerKey

__all__ = ["ClientKey", "EncryptedBit", "EncryptedInt", "LookupTable", "ServerKey", "TfheParams"]
