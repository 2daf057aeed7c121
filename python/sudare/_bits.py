"""Who encrypts integers and booleans, who computes on them, who decrypts."""

from __future__ import annotations

from typing import Any

from . import _core, _html
from ._bits_array import BLOCK, EncryptedBits, blocks, parameters, plain, words
from ._errors import SecurityError, UnsupportedError
from ._files import PathLike, Source, Travels, octets
from ._frames import framed
from ._keys import Home, KeyedServer, SecretHolder
from ._memory import require
from ._progress import clock
from ._text import EncryptedText, texts_of, words_of
from ._values import each

__all__ = ["BitsClient", "BitsContext", "BitsPublicClient", "BitsServer", "bits"]

PARAMETERS = "message_2_carry_2"


class BitsServer(KeyedServer[_core.BitsServer]):
    """Computes on encrypted integers. It holds evaluation keys and nothing secret.

    It travels by `save` and `sudare.load`, or `to_bytes` and `from_bytes`, and pickles for your own
    processes.

    >>> client = sd.BitsClient(parameters="insecure_test")  # no security: quick to try
    >>> server = client.server()
    >>> there = sd.BitsServer.from_bytes(client.params_bytes(), server.to_bytes())
    >>> x = there.load(client.encrypt(np.uint8([1, 2])).to_bytes())
    >>> client.decrypt(x + x)
    array([2, 4], dtype=uint8)
    """

    def __init__(self, core: _core.BitsServer, params: _core.BitsParams) -> None:
        self._core, self._params, self._home = core, params, Home(core)

    @property
    def wire_bytes(self) -> int:
        """Bytes of `to_bytes`: masks travel as seeds."""
        return self._core.wire_bytes

    def bind(self, x: EncryptedBits) -> EncryptedBits:
        """The same array, computed with by this server."""
        return EncryptedBits(x._core, x._params, self._home)

    def plain(self, x: Any) -> EncryptedBits:
        """A public array as an operand; nothing about it is secret."""
        values = plain(x)
        core = self._core.plain(str(values.dtype), list(values.shape), words(values))
        return EncryptedBits(core, self._params, self._home)

    def load(self, data: Source) -> EncryptedBits:
        """An array from `x.to_bytes()`, ready to compute with.

        `data` is bytes-like, a path or a binary file.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for an array of other parameters
        or another key.
        """
        return EncryptedBits(_core.BitsArray.from_bytes(self._params, octets(data)), self._params, self._home)

    def _saved(self) -> bytes:
        return self.params_bytes() + self.to_bytes()

    def params_bytes(self) -> bytes:
        """The parameters, as they travel."""
        return self._params.to_bytes()

    @classmethod
    def from_bytes(cls, params: Source, data: Source, threads: int = 0) -> BitsServer:
        """A server from parameters and keys, on `threads` threads (0: one for each processor).

        Raises `FormatError` for anything damaged or of another kind, `MissingKeyError` for keys that
        are not whole.
        """
        made = parameters(params)
        return cls(_core.BitsServer.from_bytes(made, octets(data), threads), made)

    def __reduce__(self) -> tuple[Any, ...]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return BitsServer.from_bytes, (self.params_bytes(), self.to_bytes(), self.threads)

    def _repr_html_(self) -> str:
        return _html.server(self)

    def __repr__(self) -> str:
        return (
            f"<sudare bits server {_described(self._params)}, {self.threads} threads, "
            f"keys {self.key_bytes / 1e6:.0f} MB, {self.wire_bytes / 1e6:.0f} MB on the wire>"
        )


def _described(params: _core.BitsParams) -> str:
    n, log_n = params.dimensions
    strength = f"{params.security}-bit" if params.security else "insecure"
    return f"{strength}, n = {n}, N = 2^{log_n}, failure 2^{params.log_failure:.0f}"


class BitsClient(SecretHolder[_core.BitsClient]):
    """Holds the secret key: encrypts, decrypts, and makes the server's keys.

    >>> client = sd.BitsClient(parameters="insecure_test")  # no security: quick to try
    >>> server = client.server()
    >>> x = client.encrypt(np.int16([-3, 200]))
    >>> client.decrypt(abs(x) > 100)
    array([False,  True])
    """

    _again = "BitsClient.from_secret_bytes(client.params_bytes(), secret)"

    def __init__(self, *, parameters: str = PARAMETERS, security: int = 128, threads: int = 0) -> None:
        if security != 128:
            raise SecurityError(f"the sets have 128 bits of security, not {security}; ask for 128")
        self._params = _core.BitsParams(parameters)
        self._core = _core.BitsClient(self._params, threads)
        self._threads = threads
        self._made: BitsServer | None = None
        self._home: Home[_core.BitsServer] = Home()

    @classmethod
    def from_secret_bytes(cls, params: Source, secret: Source, threads: int = 0) -> BitsClient:
        """The client again from its parameters and secret key, both bytes-like, paths or binary files.

        Raises `FormatError` for anything damaged or of another kind.
        """
        client = cls.__new__(cls)
        client._params = parameters(params)
        client._core = _core.BitsClient.from_secret_bytes(client._params, octets(secret), threads)
        client._threads, client._made, client._home = threads, None, Home()
        return client

    @classmethod
    def _load(cls, path: PathLike, threads: int) -> BitsClient:
        """The client again from its file."""
        client = cls.__new__(cls)
        client._params, client._core = _core.BitsClient.load(path, threads)
        client._threads, client._made, client._home = threads, None, Home()
        return client

    def _saved(self) -> bytes:
        return self.params_bytes() + self.secret_bytes()

    def params_bytes(self) -> bytes:
        """The parameters, as they travel."""
        return self._params.to_bytes()

    def server(self) -> BitsServer:
        """The server for this client's data, made once: evaluation keys only."""
        if self._made is None:
            with clock("making keys"):
                self._made = BitsServer(self._core.server(self._threads), self._params)
            self._home.server = self._made._home.server
        return self._made

    def public(self) -> BitsPublicClient:
        """Encrypts for this client, and can do no more: for others, by `save` and `sudare.load`.

        Every call makes another key, under which all encrypt for the same client.
        """
        return BitsPublicClient(self._params.to_bytes(), self._core.public_bytes(), threads=self._threads)

    def encrypt(self, x: Any) -> EncryptedBits:
        """Encrypt an array of booleans, or under a set of integers of integers of 8 to 64 bits.

        `x` is anything that NumPy takes for such an array; Python's integers are NumPy's default, int64.

        Raises `UnsupportedError` for other types, `PlanError` for integers under a set of gates,
        `OutOfMemoryError` for more than fits into memory.
        """
        return EncryptedBits(_encrypted(self._core, x, BLOCK), self._params, self._home)

    def encrypt_text(self, texts: Any, length: int) -> EncryptedText:
        """Encrypt texts of up to `length` bytes in UTF-8, as identifiers that are compared and looked up.

        Raises `InputError` for a text that is longer, `UnsupportedError` for what is no text, `PlanError`
        under a set of gates, `OutOfMemoryError` for more than fits into memory.
        """
        return EncryptedText(self.encrypt(words_of(texts, length)), length)

    def decrypt(self, x: Any, *, like: Any = None) -> Any:
        """Decrypt an array, in its type and shape.

        Texts are decrypted as texts, a tuple or another structure of arrays as such.

        `like` is a data frame whose columns, or rows, the result has: it comes as one.

        Raises `KeyMismatchError` for an array of another key or set, `UnsupportedError` for what is none,
        `ShapeError` for one that has other columns and rows than `like`.
        """

        def shown(part: Any) -> Any:
            if isinstance(part, EncryptedText):
                return texts_of(shown(part.words))
            if not isinstance(part, EncryptedBits):
                raise UnsupportedError(f"encrypted integers are decrypted, not {type(part).__name__}")
            found = self._core.decrypt(part._core).astype(part.dtype).reshape(part.shape)
            return found if like is None else framed(found, like)

        return each(shown, x)

    def load(self, data: Source) -> EncryptedBits:
        """An array from `x.to_bytes()`; `data` is bytes-like, a path or a binary file.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for an array of other parameters
        or another key.
        """
        core = _core.BitsArray.from_bytes(self._params, octets(data))
        return EncryptedBits(core, self._params, self._home)

    def _repr_html_(self) -> str:
        return _html.client(self)

    def __repr__(self) -> str:
        return f"<sudare bits client {_described(self._params)}, secret key hidden>"


class BitsPublicClient(Travels):
    """Encrypts for a client of bits under its public key, and can do no more.

    Made by `client.public()`, and from its bytes (or their file) on another machine. What it encrypts
    computes with `server.bind(x)`, or beside an array that is bound; each block of two bits travels as a
    whole ciphertext, some ten kilobytes, where the client's own travel as a word.
    """

    def __init__(self, params: Source, public: Source, *, threads: int = 0) -> None:
        self._params, self._public = parameters(params), octets(public)
        self._core = _core.BitsPublicKey(self._params, self._public, threads)

    @property
    def key_id(self) -> str:
        """The public name of the key that it encrypts for."""
        return self._core.key_id

    def encrypt(self, x: Any) -> EncryptedBits:
        """Encrypt an array; takes and raises what `BitsClient.encrypt` does."""
        return EncryptedBits(_encrypted(self._core, x, 2 * self._params.block_bytes), self._params, None)

    def encrypt_text(self, texts: Any, length: int) -> EncryptedText:
        """Encrypt texts; takes and raises what `BitsClient.encrypt_text` does."""
        return EncryptedText(self.encrypt(words_of(texts, length)), length)

    def params_bytes(self) -> bytes:
        """The parameters, as they travel."""
        return self._params.to_bytes()

    def to_bytes(self) -> bytes:
        """The public key, as it travels."""
        return self._public

    def _saved(self) -> bytes:
        return self.params_bytes() + self._public

    def __reduce__(self) -> tuple[Any, ...]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return BitsPublicClient, (self.params_bytes(), self._public)

    def __repr__(self) -> str:
        return f"<sudare bits public client {_described(self._params)}>"


def _encrypted(core: Any, x: Any, block: int) -> _core.BitsArray:
    """What a client makes of an array, in `block` bytes of memory for each of its blocks."""
    if isinstance(x, EncryptedBits):
        raise UnsupportedError("this array is encrypted already; use it as it is")
    values = plain(x)
    element = str(values.dtype)
    wanted = f"to encrypt {values.size} {element}"
    require(values.size * blocks(element) * block, wanted, "encrypt it in parts")
    made: _core.BitsArray = core.encrypt(element, list(values.shape), words(values))
    return made


class BitsContext(BitsClient):
    """Encrypts, computes and decrypts in one place: a client together with its server."""

    def __init__(self, *, parameters: str = PARAMETERS, security: int = 128, threads: int = 0) -> None:
        super().__init__(parameters=parameters, security=security, threads=threads)
        self.server()

    def __repr__(self) -> str:
        server = self.server()
        return (
            f"<sudare bits {_described(self._params)}, {server.threads} threads, "
            f"keys {server.key_bytes / 1e6:.0f} MB, secret key hidden>"
        )


def bits(*, security: int = 128, parameters: str = PARAMETERS, threads: int = 0) -> BitsContext:
    """A context with new keys for encrypted booleans and integers.

    `security` is in bits, `threads` 0 for one for each processor. `parameters` names a set: those of
    integers hold booleans too; `"gates"` holds booleans alone, computes on them in half the
    time or less and has smaller keys. Sets whose names begin with `insecure` are for tests alone.

    >>> ctx = bits(parameters="insecure_test")
    >>> x = ctx.encrypt(np.uint8([3, 200]))
    >>> ctx.decrypt(x + x)
    array([  6, 144], dtype=uint8)
    >>> gates = bits(parameters="insecure_test_gates")
    >>> a, b = gates.encrypt([True, True]), gates.encrypt([True, False])
    >>> gates.decrypt(a & ~b)
    array([False,  True])
    """
    return BitsContext(parameters=parameters, security=security, threads=threads)
