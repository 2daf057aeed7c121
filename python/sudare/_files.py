"""Files: every object that travels is saved to one and loaded from it, whatever it is."""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

from . import _core
from ._errors import FormatError, InputError, PlanError, UnsupportedError

if TYPE_CHECKING:
    from ._bits import BitsClient, BitsServer
    from ._plan import Plan
    from ._session import Client, PublicClient, Server

    Home: TypeAlias = "Plan | Client | PublicClient | Server | BitsClient | BitsServer"

__all__ = ["Bytes", "PathLike", "Source", "Travels", "load", "octets"]

Bytes: TypeAlias = "bytes | bytearray | memoryview"
PathLike: TypeAlias = "str | os.PathLike[str]"
Source: TypeAlias = "Bytes | PathLike | BinaryIO"


def octets(source: Any) -> bytes:
    """The bytes of a bytes-like object, of a file by its path, or of an open binary file.

    Raises `FormatError` for anything else, `OSError` if a file cannot be read.
    """
    if isinstance(source, bytes):
        return source
    if isinstance(source, (str, os.PathLike)):
        return Path(source).read_bytes()
    found = source.read() if hasattr(source, "read") else source
    try:
        return bytes(memoryview(found))
    except (TypeError, ValueError):
        raise FormatError(
            f"an object is read from bytes, a path or an open binary file, not from {type(source).__name__}"
        ) from None


class Kind(NamedTuple):
    """What the header of an object says."""

    code: int
    name: str
    nbytes: int
    key: str


def kind(data: bytes) -> Kind:
    """What an object is, by its header alone.

    Raises `FormatError` for bytes that are none of this package's objects.
    """
    return Kind(*_core.peek(data))


class Travels(ABC):
    """Has bytes of its own that a file may hold."""

    #: Whether the bytes are for their owner alone.
    _private = False

    @abstractmethod
    def _saved(self) -> bytes:
        """What a file holds."""

    def _replaces(self, held: bytes) -> None:  # noqa: B027 (most have nothing to take over)
        """Takes over what must outlive the older copy of itself that a file holds."""

    def save(self, target: PathLike | BinaryIO) -> None:
        """Write it to a file, which `sudare.load` reads: by a path, or an open binary file.

        A path gets the whole file or none. A file with a secret key is readable by its owner alone, and
        never takes the place of another key. Of the releases counted in it and here the larger number stays.

        Raises `InputError` instead of replacing another secret key, `OSError` if writing fails.
        """
        if not isinstance(target, (str, os.PathLike)):
            target.write(self._saved())
            return
        path = Path(target)
        if self._private and path.exists():
            # A link stays a link to the file that is replaced.
            self._save_over(path.resolve())
        else:
            _write(path, self._saved(), 0o600 if self._private else 0o666)

    def _save_over(self, path: Path) -> None:
        """Takes the place of an older copy, which nobody else reads or replaces meanwhile."""
        lock = _core.LockedFile(path)
        try:
            held = path.read_bytes()
            if _last_key(held) != _last(self._saved()).key:
                raise InputError(
                    f"{path} is there already and holds something else; what its key encrypted would be "
                    "lost: name another file, or remove it first"
                )
            self._replaces(held)
            _write(path, self._saved(), 0o600)
        finally:
            lock.release()


def _last(data: bytes) -> Kind:
    """The last of the objects that stand one after another."""
    found = kind(data)
    rest = data[found.nbytes :]
    return _last(rest) if rest else found


def _last_key(data: bytes) -> str | None:
    try:
        return _last(data).key
    except FormatError:
        return None


def _write(path: Path, data: bytes, mode: int) -> None:
    """Writes beside the place and renames when everything is on the disk."""
    handle, scratch = tempfile.mkstemp(".part", f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode != 0o600:
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(scratch, mode & ~mask)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def load(source: Source, home: Home | None = None, *, threads: int = 0) -> Any:
    """Read whatever was saved: a plan, client, server, encrypted value, statistics, …; its file says which.

    `source` is a path, bytes or an open binary file. What belongs to a plan is read with it: `home` is the
    plan, or a client or server of it, which then computes with the value. What `sudare.bits` makes needs
    none; with one, the array computes there. `threads` are those of a client or server (0: one for each
    processor). Files of the command `sudare` are read too. Every size and value is checked, and nothing is
    run, so that a file may come from anybody; a secret key and a server's keys are to be your own.

    Raises `FormatError` for a file that is damaged or none of Sudare's, `PlanError` where a plan is missing,
    `KeyMismatchError` for objects of another plan, `OSError` if it cannot be read.

    >>> import io
    >>> plan = sd.plan(lambda A: A.sum(axis=0), A=sd.spec((4, 2)), error=1e-4)
    >>> plan.save(file := io.BytesIO())
    >>> load(file.getvalue()) == plan
    True
    """
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            head = file.read(1 << 12)
        if head.startswith(_MAGIC) and int.from_bytes(head[10:12], "little") == _PANEL:
            from ._genome import Panel

            return Panel.open(source)
    data = octets(source)
    if data.startswith(b"PK"):
        from ._moments import Moments

        return Moments._read(data)
    if data.lstrip()[:1] == b"{":
        from ._plan import Plan

        try:
            return Plan.from_json(data.decode())
        except UnicodeDecodeError:
            raise FormatError("this is no plan: it is not text; copy it again") from None
    found = kind(data)
    reader = _READERS.get(found.code)
    if reader is None:
        remedy = _REMEDIES.get(found.code, "it is read in Rust")
        raise UnsupportedError(f"this is {found.name}; {remedy}")
    return reader(data, home, threads)


_MAGIC = b"SUDARE\x1a\n"
_PANEL = 64


def _plan_of(home: Any, what: str) -> Plan:
    from ._plan import Plan

    plan = home if isinstance(home, Plan) else getattr(home, "plan", None)
    if not isinstance(plan, Plan):
        raise PlanError(f"{what} belongs to a plan: sudare.load(file, plan)")
    return plan


def _client(data: bytes, home: Any, threads: int) -> Any:
    from ._session import Client

    return Client.from_secret_bytes(_plan_of(home, "a secret key"), data, threads=threads)


def _public(data: bytes, home: Any, threads: int) -> Any:
    from ._session import PublicClient

    return PublicClient(_plan_of(home, "a public key"), data, threads=threads)


def _server(data: bytes, home: Any, threads: int) -> Any:
    from ._session import Server

    return Server.from_bytes(_plan_of(home, "a server's keys"), data, threads)


def _encrypted(data: bytes, home: Any, threads: int) -> Any:
    from ._matrix import Encrypted

    found = Encrypted.from_bytes(_plan_of(home, "an encrypted value"), data)
    return Encrypted(found._core, found._plan, getattr(home, "_home", None), found._dropped)


def _bits(data: bytes, home: Any, threads: int) -> Any:
    """What is under parameters of TFHE, which stand before it."""
    from ._bits import BitsClient, BitsServer
    from ._bits_array import EncryptedBits, parameters

    first = kind(data)
    alone = first.code != _TFHE_PARAMS
    if alone and home is None:
        raise PlanError(f"this is {first.name} without its parameters: sudare.load(data, client or server)")
    params = home.params_bytes() if alone else data[: first.nbytes]
    rest = data if alone else data[first.nbytes :]
    if not rest:
        raise UnsupportedError("these are parameters alone; a client, a server or an array is loaded")
    what = kind(rest)
    if what.code == _TFHE_CLIENT:
        return BitsClient.from_secret_bytes(params, rest, threads)
    if what.code == _TFHE_SERVER:
        return BitsServer.from_bytes(params, rest, threads)
    if what.code != _TFHE_ARRAY:
        raise FormatError(f"{what.name} does not follow parameters of TFHE")
    made = parameters(params)
    return EncryptedBits(_core.BitsArray.from_bytes(made, rest), made, getattr(home, "_home", None))


def _sites(data: bytes, home: Any, threads: int) -> Any:
    from ._genome import Sites

    return Sites.from_bytes(data)


def _genome_client(data: bytes, home: Any, threads: int) -> Any:
    from ._genome import Client

    return Client.from_secret_bytes(data, threads)


_TFHE_PARAMS, _TFHE_CLIENT, _TFHE_SERVER, _TFHE_ARRAY = 32, 33, 34, 35
_READERS: dict[int, Callable[[bytes, Any, int], Any]] = {
    2: _client,
    3: _public,
    4: _server,
    7: _encrypted,
    19: _encrypted,
    _TFHE_PARAMS: _bits,
    _TFHE_CLIENT: _bits,
    _TFHE_SERVER: _bits,
    _TFHE_ARRAY: _bits,
    65: _sites,
    67: _genome_client,
}
_REMEDIES = {
    _PANEL: "a panel is mapped and not read: give the path of its file",
    68: "it is read with the answer: client.answer(query, answer)",
    69: "a server answers it: sudare.genome.Server(panel).search(data)",
    70: "the client that asked reads it: client.answer(query, data)",
    71: "a server takes it over: server.add_keys(data)",
}
