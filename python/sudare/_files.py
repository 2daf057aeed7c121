"""Files: every object that travels is saved to one and loaded from it, whatever it is."""

from __future__ import annotations

import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

from . import _core
from ._errors import FormatError, PlanError, SudareError, UnsupportedError
from ._memory import require

if TYPE_CHECKING:
    from . import learn
    from ._bits import BitsClient, BitsServer
    from ._index import Index, IndexClient, IndexServer
    from ._models import CompiledModel, ModelClient, ModelPlan, ModelServer
    from ._plain import PlainClient, PlainIndex
    from ._plan import Plan
    from ._session import Client, PublicClient, Server

    Home: TypeAlias = (
        "Plan | Client | PublicClient | Server | BitsClient | BitsServer"
        " | ModelPlan | CompiledModel | ModelClient | ModelServer"
        " | learn.Plan | learn.Client | learn.PublicClient"
        " | Index | IndexClient | IndexServer | PlainIndex | PlainClient"
    )

__all__ = ["Bytes", "PathLike", "Source", "Travels", "load", "octets"]

Bytes: TypeAlias = "bytes | bytearray | memoryview"
PathLike: TypeAlias = "str | os.PathLike[str]"
Source: TypeAlias = "Bytes | PathLike | BinaryIO"


def octets(source: Any) -> bytes:
    """The bytes of a bytes-like object, of a file by its path, or of an open binary file.

    Of a file no more is read than its own header says and memory has room for.

    Raises `FormatError` for anything else, `OutOfMemoryError` for what does not fit, `OSError` if a file
    cannot be read.
    """
    if isinstance(source, bytes):
        return source
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return _contents(file)
    try:
        return _contents(source) if hasattr(source, "read") else bytes(memoryview(source))
    except (TypeError, ValueError) as error:
        if isinstance(error, SudareError):
            raise
        raise FormatError(
            f"an object is read from bytes, a path or an open binary file, not from {type(source).__name__}"
        ) from None


def _contents(file: BinaryIO) -> bytes:
    """What a file holds from here on: an object, parameters and an object, text, or statistics."""
    if not getattr(file, "seekable", bool)():
        return _contents(io.BytesIO(_stream(file)))
    start = file.tell()
    length = file.seek(0, os.SEEK_END) - start

    def at(offset: int, count: int) -> bytes:
        file.seek(start + offset)
        return file.read(count)

    end = length
    if _recognised(at(0, _HEAD)):
        end = kind(at(0, _MOST_HEADER)).nbytes
        if end < length:
            end += kind(at(end, _MOST_HEADER)).nbytes
    if end != length or (length > _MOST_TEXT and at(0, 1) != _MAGIC[:1]):
        raise FormatError(f"the file has {length} bytes, and its beginning says {end}; copy it again")
    require(length, "to read this file", "read it where there is more memory")
    return at(0, length)


def _stream(file: BinaryIO) -> bytes:
    """All of a file that only goes forward."""
    parts: list[bytes] = []
    while part := file.read(_STEP):
        if not parts:
            _recognised(part)
        parts.append(part)
        require(2 * len(parts) * _STEP, "to read this file", "read it where there is more memory")
    return b"".join(parts)


def _recognised(head: bytes) -> bool:
    """Whether a file begins as an object does; refused if as nothing of this package's."""
    if not head.startswith((_MAGIC, _MODEL)) and head.lstrip()[:1] != b"{":
        raise FormatError("this does not begin as any object of sudare does; name another file")
    return head.startswith(_MAGIC)


class Kind(NamedTuple):
    """What the header of an object says."""

    object: str
    """The name of its type in Rust."""
    name: str
    nbytes: int
    key: str
    secret: bool


def kind(data: bytes) -> Kind:
    """What an object is, by its header alone.

    Raises `FormatError` for bytes that are none of this package's objects.
    """
    return Kind(*_core.peek(data))


class Travels(ABC):
    """Has bytes of its own that a file may hold."""

    @abstractmethod
    def _saved(self) -> bytes:
        """What a file holds."""

    def _write(self, path: str, overwrite: bool) -> None:
        """Writes the file: whole, or not at all."""
        _core.write_file(path, self._saved(), overwrite)

    def save(self, target: PathLike | BinaryIO, *, overwrite: bool = False) -> None:
        """Write it to a file, which `sudare.load` reads: by a path, or an open binary file.

        A path gets the whole file or none. No file takes the place of a secret key, unless `overwrite` says
        so; one with a secret key is readable by its owner alone, and replaces nothing but the same key.

        Raises `InputError` instead of replacing another secret key, `OSError` if writing fails.
        """
        if isinstance(target, (str, os.PathLike)):
            self._write(os.fspath(target), overwrite)
        else:
            target.write(self._saved())


def load(source: Source, home: Home | None = None, *, threads: int = 0) -> Any:
    """Read whatever was saved: a plan, client, server, encrypted value, statistics, …; its file says which.

    `source` is a path, bytes or an open binary file. What belongs to a plan is read with it: `home` is the
    plan, or a client or server of it, which then computes with the value. What `sudare.bits` makes needs
    none; with one, the array computes there. The key of a compiled model's client belongs to the model's
    plan, and a server's keys to the model; its server reads requests, and its client answers. With the plan
    of a fit its keys are read, and rows, which `rows.bind(server)` attaches; its client reads answers. The
    plan of a search reads its keys; its server reads questions, and its client answers.
    `threads` are those of a client or server (0: one for each processor). Files of the command `sudare` are
    read too. Every size and value is checked, and nothing is run, so that a file may come from anybody; a
    secret key and a server's keys are to be your own.

    Raises `FormatError` for a file that is damaged or none of Sudare's, `PlanError` where a plan is missing,
    `KeyMismatchError` for objects of another plan, `OutOfMemoryError` for what does not fit into memory,
    `OSError` if it cannot be read.

    >>> import io
    >>> plan = sd.plan(lambda A: A.sum(axis=0), A=sd.spec((4, 2)), error=1e-4)
    >>> plan.save(file := io.BytesIO())
    >>> load(file.getvalue()) == plan
    True
    """
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb"):
            begins = _core.peek_file(source)
        found = None if begins is None else Kind(*begins)
        if found is not None and found.object == "GenomePanel":
            from ._genome import Panel

            return Panel.open(source)
        if found is not None and found.secret:
            # Past Python's memory, which nobody wipes.
            if found.object == "TfheClientKey":
                return _bits_client(source, home, threads)
            return _READERS[found.object](source, home, threads)
    data = octets(source)
    if data.startswith((_MODEL, _FOREST)):
        from ._models import CompiledModel

        return CompiledModel.from_bytes(data)
    if data.lstrip()[:1] == b"{":
        return _text(data)
    what = kind(data)
    reader = _READERS.get(what.object)
    if reader is None:
        remedy = _REMEDIES.get(what.object, "it is read in Rust")
        raise UnsupportedError(f"this is {what.name}; {remedy}")
    return reader(data, home, threads)


def _text(data: bytes) -> Any:
    """A plan, of a fit, model or search too, or statistics, which are JSON."""
    from ._index import Index
    from ._models import ModelPlan
    from ._moments import KIND, Moments
    from ._plain import PlainIndex
    from ._plan import Plan
    from .learn import _layout as learning

    try:
        text = data.decode()
        if f'"sudare": "{KIND}"' in text[:64]:
            return Moments._read(json.loads(text))
        if f'"sudare": "{learning.KIND}"' in text[:64]:
            return learning.Plan.from_json(text)
        if '"sudare_model"' in text[:64] or '"sudare_forest"' in text[:64]:
            return ModelPlan.from_json(text)
        if '"sudare_index"' in text[:64]:
            return Index.from_json(text)
        if '"sudare_plain_index"' in text[:64]:
            return PlainIndex.from_json(text)
    except UnicodeDecodeError:
        raise FormatError("this is not a plan, for it is not text; copy it again") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, SudareError):
            raise
        raise FormatError("these are not statistics that were saved; copy them again") from None
    return Plan.from_json(text)


_MAGIC = b"SUDARE\x1a\n"
#: A compiled network or forest, whose weights are no object of the wire format.
_MODEL, _FOREST = b"SUDMODL", b'{"sudare_forest_file"'
#: Bytes by which a file is recognised; the longest header; the longest text or table of statistics; and what
#: is read at a time.
_HEAD, _MOST_HEADER, _MOST_TEXT, _STEP = 1 << 12, 16 << 20, 1 << 30, 1 << 28


def _plan_of(home: Any, what: str) -> Plan:
    from ._plan import Plan

    plan = home if isinstance(home, Plan) else getattr(home, "plan", None)
    if not isinstance(plan, Plan):
        raise PlanError(f"{what} belongs to a plan: sudare.load(file, plan)")
    return plan


def _of_fit(home: Any) -> Any:
    """The plan of a fit, if it or what has it is given."""
    from .learn._layout import Plan

    plan = home if isinstance(home, Plan) else getattr(home, "plan", None)
    return plan if isinstance(plan, Plan) else None


def _of_search(home: Any) -> Any:
    """The plan of a search, if it or what has it is given."""
    from ._index import Index
    from ._plain import PlainIndex

    index = getattr(home, "_index", home)
    return index if isinstance(index, (Index, PlainIndex)) else None


def _client(data: Source, home: Any, threads: int) -> Any:
    from ._index import Index, IndexClient
    from ._models import ModelClient, ModelPlan
    from ._plain import PlainClient
    from ._session import Client

    of_model = home if isinstance(home, ModelPlan) else getattr(home, "plan", None)
    if isinstance(of_model, ModelPlan):
        return ModelClient.from_secret_bytes(of_model, data, threads=threads)
    if (fit := _of_fit(home)) is not None:
        from .learn import _owner as learning

        return learning.Client.from_secret_bytes(fit, data, threads=threads)
    if (index := _of_search(home)) is not None:
        made = IndexClient if isinstance(index, Index) else PlainClient
        return made.from_secret_bytes(index, data, threads=threads)
    return Client.from_secret_bytes(_plan_of(home, "a secret key"), data, threads=threads)


def _public(data: bytes, home: Any, threads: int) -> Any:
    from ._session import PublicClient

    if (fit := _of_fit(home)) is not None:
        from .learn import _owner as learning

        return learning.PublicClient(fit, data, threads=threads)
    return PublicClient(_plan_of(home, "a public key"), data, threads=threads)


def _server(data: bytes, home: Any, threads: int) -> Any:
    from ._index import Index, IndexServer
    from ._models import CompiledModel, ModelPlan, ModelServer
    from ._session import Server

    if isinstance(home, CompiledModel):
        return ModelServer.from_bytes(home, data, threads=threads)
    if isinstance(home, ModelPlan):
        raise PlanError("a server's keys belong to a model with its weights: sudare.load(file, model)")
    if isinstance(index := _of_search(home), Index):
        return IndexServer.from_bytes(index, data, threads)
    fit = _of_fit(home)
    plan = _plan_of(home, "a server's keys") if fit is None else fit.product
    return Server.from_bytes(plan, data, threads)


def _encrypted(data: bytes, home: Any, threads: int) -> Any:
    from ._index import Index, IndexAnswer, IndexClient, IndexQuery, IndexServer
    from ._matrix import Encrypted
    from ._models import CompiledModel, ModelAnswer, ModelClient, ModelPlan, ModelRequest, ModelServer

    if isinstance(home, ModelServer):
        return ModelRequest.from_bytes(home.plan, data)
    if isinstance(home, ModelClient):
        return ModelAnswer.from_bytes(home.plan, data)
    if isinstance(home, (ModelPlan, CompiledModel)):
        raise PlanError("a model's server reads requests, and its client answers: sudare.load(file, server)")
    if isinstance(home, IndexServer):
        return IndexQuery.from_bytes(home._index, data)
    if isinstance(home, IndexClient):
        return IndexAnswer.from_bytes(home._index, data)
    if (index := _of_search(home)) is not None:
        if isinstance(index, Index):
            raise PlanError(
                "a search's server reads questions, and its client answers: sudare.load(file, server)"
            )
        raise UnsupportedError("table.scores(file) reads a question, and client.decrypt(file) its answer")
    if (fit := _of_fit(home)) is not None:
        from .learn import _owner, _rows

        return (_rows.Answer if isinstance(home, _owner.Client) else _rows.Rows).from_bytes(fit, data)
    found = Encrypted.from_bytes(_plan_of(home, "an encrypted value"), data)
    return Encrypted(found._core, found._plan, getattr(home, "_home", None), found._dropped)


def _bits(data: bytes, home: Any, threads: int) -> Any:
    """What is under parameters of TFHE, which stand before it."""
    from ._bits import BitsClient, BitsPublicClient, BitsServer
    from ._bits_array import EncryptedBits, parameters

    first = kind(data)
    alone = first.object != "TfheParams"
    if alone and home is None:
        raise PlanError(f"this is {first.name} without its parameters: sudare.load(data, client or server)")
    params = home.params_bytes() if alone else data[: first.nbytes]
    rest = data if alone else data[first.nbytes :]
    if not rest:
        raise UnsupportedError("these are parameters alone; load a client, a server or an array")
    what = kind(rest)
    if what.object == "TfheClientKey":
        return BitsClient.from_secret_bytes(params, rest, threads)
    if what.object == "TfheServerKey":
        return BitsServer.from_bytes(params, rest, threads)
    if what.object == "TfhePublicKey":
        return BitsPublicClient(params, rest, threads=threads)
    if what.object != "TfheArray":
        raise FormatError(f"{what.name} does not follow parameters of TFHE; copy the file again")
    made = parameters(params)
    return EncryptedBits(_core.BitsArray.from_bytes(made, rest), made, getattr(home, "_home", None))


def _bits_client(path: PathLike, home: Any, threads: int) -> Any:
    from ._bits import BitsClient

    return BitsClient._load(path, threads)


def _sites(data: bytes, home: Any, threads: int) -> Any:
    from ._genome import Sites

    return Sites.from_bytes(data)


def _genome_client(data: Source, home: Any, threads: int) -> Any:
    from ._genome import Client

    return Client.from_secret_bytes(data, threads)


_READERS: dict[str, Callable[[Any, Any, int], Any]] = {
    "SecretKey": _client,
    "PublicKey": _public,
    # Keys of a compact search begin with those of half a bootstrap.
    **dict.fromkeys(("EvalKeys", "BootstrapKeys"), _server),
    **dict.fromkeys(("Bundle", "IntegerBundle"), _encrypted),
    **dict.fromkeys(("TfheParams", "TfheClientKey", "TfheServerKey", "TfhePublicKey", "TfheArray"), _bits),
    "GenomeSites": _sites,
    "GenomeClientKey": _genome_client,
}
_REMEDIES = {
    "GenomePanel": "a panel is not read as a whole: give the path of its file",
    "GenomePending": "it is read with the answer: client.answer(query, answer)",
    "GenomeQuery": "a server answers it: sudare.genome.Server(panel).search(data)",
    "GenomeAnswer": "the client that asked reads it: client.answer(query, data)",
    "GenomeKeys": "a server takes it over: server.add_keys(data)",
}
