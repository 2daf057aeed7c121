"""Computes on encrypted matrices, tables, integers and bits as NumPy does on plain ones.

A plan chooses parameters, keys and methods from shapes, bounds and a wanted error. A client holds the
secret key. A server computes and can read nothing.

>>> import numpy as np, sudare as sd
>>> plan = sd.plan(lambda A, B: A @ B, A=sd.spec((8, 8)), B=sd.spec((8, 8)), error=1e-4)
>>> client = sd.Client(plan)
>>> server = client.server()
>>> A, B = np.eye(8), np.full((8, 8), 0.5)
>>> C = client.encrypt(A, "A") @ client.encrypt(B, "B")
>>> bool(np.abs(client.decrypt(C) - A @ B).max() < 1e-4)
True
"""

import importlib
from typing import Any

from . import _core, bfv, bgv, ckks, learn, tfhe
from . import _genome as genome
from ._bits import BitsClient, BitsContext, BitsPublicClient, BitsServer, bits
from ._bits_array import EncryptedBits
from ._context import Context, context
from ._devices import Device, devices
from ._errors import (
    CostWarning,
    FormatError,
    InputError,
    KeyMismatchError,
    LevelError,
    MissingKeyError,
    OutOfMemoryError,
    PlanError,
    PrecisionError,
    ReleaseError,
    RemoteError,
    SecurityError,
    ShapeError,
    SudareError,
    UnsupportedError,
)
from ._estimate import Estimate
from ._files import load
from ._functions import (
    bounded,
    exp,
    greater,
    log,
    maximum,
    minimum,
    reciprocal,
    relu,
    sigmoid,
    sign,
    sqrt,
    table,
    tanh,
    where,
)
from ._index import Index, IndexAnswer, IndexClient, IndexQuery, IndexServer, IndexTable, TooManyError
from ._integer_context import IntegerContext
from ._matrix import Encrypted
from ._models import (
    CompiledModel,
    Dense,
    ModelAnswer,
    ModelClient,
    ModelPlan,
    ModelRequest,
    ModelServer,
    compile,  # noqa: A004
)
from ._moments import Moments
from ._parties import Parties, Party, combine
from ._plain import PlainClient, PlainIndex, PlainTable
from ._plan import Plan, plan
from ._plot import Picture
from ._polynomial import Polynomial, fit
from ._ranges import Range, Ranges, ranges
from ._release import Release
from ._remote import Remote, RemoteModel, RemoteObject, RemoteRoom, RemoteServer, RemoteTable, remote
from ._session import Client, PublicClient, Server
from ._small_array import EncryptedSmall
from ._small_context import Choice, SmallContext, explain
from ._spec import Spec, spec
from ._stored import StoredMatrix, StoredProduct, store
from ._stored import open_store as open  # noqa: A004
from ._text import EncryptedText
from ._tile import EncryptedTile

__version__ = _core.VERSION

__all__ = [
    "BitsClient",
    "BitsContext",
    "BitsPublicClient",
    "BitsServer",
    "Choice",
    "Client",
    "CompiledModel",
    "Context",
    "CostWarning",
    "Dense",
    "Device",
    "Encrypted",
    "EncryptedBits",
    "EncryptedSmall",
    "EncryptedText",
    "EncryptedTile",
    "Estimate",
    "FormatError",
    "Index",
    "IndexAnswer",
    "IndexClient",
    "IndexQuery",
    "IndexServer",
    "IndexTable",
    "InputError",
    "IntegerContext",
    "KeyMismatchError",
    "LevelError",
    "MissingKeyError",
    "ModelAnswer",
    "ModelClient",
    "ModelPlan",
    "ModelRequest",
    "ModelServer",
    "Moments",
    "OutOfMemoryError",
    "Parties",
    "Party",
    "Picture",
    "PlainClient",
    "PlainIndex",
    "PlainTable",
    "Plan",
    "PlanError",
    "Polynomial",
    "PrecisionError",
    "PublicClient",
    "Range",
    "Ranges",
    "Release",
    "ReleaseError",
    "Remote",
    "RemoteError",
    "RemoteModel",
    "RemoteObject",
    "RemoteRoom",
    "RemoteServer",
    "RemoteTable",
    "SecurityError",
    "Server",
    "ShapeError",
    "SmallContext",
    "Spec",
    "StoredMatrix",
    "StoredProduct",
    "SudareError",
    "TooManyError",
    "UnsupportedError",
    "__version__",
    "bfv",
    "bgv",
    "bits",
    "bounded",
    "ckks",
    "combine",
    "compile",
    "context",
    "devices",
    "exp",
    "explain",
    "fit",
    "genome",
    "greater",
    "learn",
    "load",
    "log",
    "matmul",
    "maximum",
    "minimum",
    "open",
    "plan",
    "ranges",
    "reciprocal",
    "relu",
    "remote",
    "sigmoid",
    "sign",
    "spec",
    "sqrt",
    "store",
    "table",
    "tanh",
    "tfhe",
    "where",
]


def matmul(x: Any, y: Any) -> Any:
    """The product `x @ y` of encrypted matrices, stored matrices, or dask arrays of encrypted blocks.

    >>> ctx = context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> x = ctx.encrypt([[1, 2], [3, 4]])
    >>> ctx.decrypt(matmul(x, x)).round(3)
    array([[ 7., 10.],
           [15., 22.]])
    """
    return x @ y


def __getattr__(name: str) -> Any:
    # Dask is asked for when it is used.
    if name == "dask":
        return importlib.import_module("sudare._dask")
    if name == "softmax":
        raise AttributeError(
            "there is no softmax; write it out, with intervals that you know: e = sudare.exp(x - high, "
            "(low, 0), degree=9); e * sudare.reciprocal(e.sum(axis=1, keepdims=True), (least, n), "
            "degree=15)"
        )
    raise AttributeError(f"module 'sudare' has no attribute {name!r}")
