"""Keys that several parties hold together: a folder or room that all of them see, and one that each keeps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import monotonic, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._errors import UnsupportedError
from ._matrix import Blocks, Encrypted, Unused
from ._plan import Plan
from ._progress import clock, progress
from ._remote import RemoteRoom
from ._session import PublicClient, Server
from ._stored import PathLike

__all__ = ["Parties", "Party", "combine"]


def _at(room: PathLike | RemoteRoom) -> str | tuple[_core.Remote, str]:
    """Where messages are, as the extension has it."""
    return (room.remote._core, room.name) if isinstance(room, RemoteRoom) else os.fspath(room)


class Parties:
    """What all parties see: nothing in it is secret, and it is for one key.

    It is a folder, or a room of a server: `sudare.remote(…).room("study")`. Made by `Parties.begin`. Whoever
    computes or carries messages reads it so; a party is a `Party`.

    Raises `FormatError` where no session was begun, and for a room `RemoteError` where its server cannot be
    reached or refuses, as all that follows does.
    """

    def __init__(self, room: PathLike | RemoteRoom) -> None:
        self._room = _core.Room.open(_at(room))
        self._plan = Plan(self._room.plan)

    @classmethod
    def begin(cls, room: PathLike | RemoteRoom, plan: Plan, names: Sequence[str]) -> Parties:
        """Begin a session for a plan, in a new folder or room, and name the parties.

        The plan says how many there are and how many decrypt: `sudare.plan(…, parties=3, threshold=2,
        release=sudare.Release(100))`. Names have letters without accents, digits and `_`, up to 32.

        Raises `PlanError` for a plan whose key has one owner and for other names than it has parties,
        `SudareError` where a session was begun already.
        """
        _core.Room.create(_at(room), plan._core, list(names))
        return Parties(room)

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._plan

    @property
    def names(self) -> list[str]:
        """Names of all parties, in their order."""
        return self._room.names

    @property
    def missing(self) -> dict[str, list[str]]:
        """Whose messages of key generation have not come, by step; empty when keys are there."""
        return dict(self._room.missing())

    def fingerprint_of(self, name: str) -> str:
        """What is to be compared, by another way, of the key by which others encrypt to a name.

        Raises `PlanError` where nobody of the name has joined.
        """
        return self._room.fingerprint(name)

    def public(self, *, threads: int = 0) -> PublicClient:
        """Encrypts under the common key: for a party's own data, and for others by `save`.

        Raises `ShapeError` that names the parties whose shares are missing.
        """
        return PublicClient(self._plan, self._room.public_bytes(), threads=threads)

    def put(self, name: str, x: Encrypted) -> None:
        """Put an encrypted value where all see it, for good: an input, or a result to be decrypted.

        Its name has letters without accents, digits and `_`, up to 32. The same value again changes nothing.

        Raises `PlanError` for what is no name, `KeyMismatchError` for a value of another plan, `SudareError`
        where another one has the name.
        """
        self._room.put(name, _only(x))

    def value(self, name: str) -> Encrypted | None:
        """The encrypted value that was put under a name; None where there is none yet.

        A server computes with it after `server.bind`.

        Raises `FormatError` or `KeyMismatchError` for what is no value of the plan.
        """
        found = self._room.value(name)
        return None if found is None else Encrypted(found, self._plan, None)

    def request(self, x: Encrypted) -> tuple[list[str], list[str]] | None:
        """Who was asked to decrypt a result, and for whom; None where nobody was.

        Raises `FormatError` for a request that was damaged, `UnsupportedError` for what is no result of the
        plan.
        """
        return self._room.request(_only(x))

    def unanswered(self, x: Encrypted) -> list[str]:
        """Parties that were asked to decrypt a result and have not answered.

        Raises `FormatError` for a request that was damaged, `UnsupportedError` for what is no result of the
        plan.
        """
        return self._room.unanswered(_only(x))

    def __repr__(self) -> str:
        return f"<sudare parties {', '.join(self.names)}>"


def combine(room: PathLike | RemoteRoom, *, threads: int = 0) -> Server:
    """The server of a session, from the messages of all parties: evaluation keys, and nothing secret.

    Of a folder it computes here, on `threads` threads. Of a server's room it computes there, a
    `RemoteServer`, with keys that the server adds: no message of a party travels again.

    Raises `ShapeError` that names the parties whose messages are missing, and `FormatError` or
    `KeyMismatchError` that names one whose message is damaged or belongs elsewhere.
    """
    seen = Parties(room)
    if isinstance(room, RemoteRoom):
        return room.combined(seen.plan)
    with progress("combining keys"):
        return Server(seen._room.server(threads), seen.plan)


class Party(Parties):
    """One of the parties that hold a key together, or a receiver of what they decrypt.

    `room` is what `Parties.begin` made: a folder, or a server's room. `name` is one of the names there, or
    another to receive results. `home` is a folder that no other user reaches: it has the party's secret and
    its ledger of answers. Keep it out of backups: who goes back to an older ledger may answer twice. A
    process can end at any time; the same call goes on from there. One process at a time has a party.

    Raises `SudareError` where the name is taken, another process has it, or other users reach its folder,
    `FormatError` for a party whose ledger or secret is gone.
    """

    def __init__(self, room: PathLike | RemoteRoom, name: str, home: PathLike, *, threads: int = 0) -> None:
        super().__init__(room)
        self._name, self._core = name, _core.Member(_at(room), name, os.fspath(home), threads)

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """What others see of the key by which they encrypt to this name: compare it by another way."""
        return self._core.fingerprint()

    @property
    def releases(self) -> int:
        """Ciphertexts that this party has helped to decrypt."""
        return self._core.releases()

    def round(self, *, wait: float = 0) -> dict[str, list[str]]:
        """Send what this party can send by now, take over what came for it, and say what is `missing`.

        Call it until nothing is: three times at most, if all others do. A call that has nothing to do changes
        nothing. With `wait` it does so itself, for at most that many seconds.

        Raises `FormatError` or `KeyMismatchError` that names a party whose message is damaged or foreign.
        """
        end, pause, before = monotonic() + wait, 0.1, None
        with progress("making keys of several parties"):
            while True:
                # Before the round, which takes over what came until then.
                missing = self.missing
                self._core.round()
                left = end - monotonic()
                if not missing or left <= 0:
                    return self.missing
                pause = 0.1 if missing != before else min(2 * pause, 10)
                before = missing
                sleep(min(pause, left))

    def share(
        self,
        x: Encrypted,
        parties: Sequence[str] | None = None,
        to: Sequence[str] | None = None,
        *,
        agree: bool = False,
    ) -> tuple[list[str], list[str]]:
        """Answer for a result: `parties` decrypt it, as many as the threshold, and the names in `to` read it.

        The first who asks fixes both, and the others name the same, in any order. Or they look at
        `request(x)` and agree to it, whoever is named, by `agree=True`. What was answered is returned. A
        refusal leaves no request. A ciphertext is answered once: asked again, the answer is the same bytes,
        and asked for others it is refused. Each answer counts as a release of the plan.

        Raises `PlanError` where nothing was asked, or something else, and before a receiver has joined;
        `UnsupportedError` where neither names are given nor `agree`; `KeyMismatchError` where this party is
        none of `parties`; `ReleaseError` for another answer than before and where no release is left.
        """
        if (parties is None) != (to is None):
            raise UnsupportedError("give both parties= and to=, who decrypts and for whom, or neither")
        if agree and parties is not None:
            raise UnsupportedError(
                "give parties= and to=, who decrypts and for whom, or agree=True to what was asked, "
                "and not both"
            )
        asked = None if parties is None or to is None else (list(parties), list(to))
        if asked is None and not agree and (found := self.request(x)):
            by, readers = (", ".join(names) for names in found)
            raise UnsupportedError(
                f"{by} were asked to decrypt it for {readers}; give parties= and to= with these names, "
                "or agree=True"
            )
        with clock("a share of a decryption"):
            return self._core.share(_only(x), asked)

    def combine(self, x: Encrypted) -> NDArray[Any]:
        """The result, where it was decrypted for this name. It is within `plan.error`; integers are exact.

        Raises `ShapeError` that names the parties whose shares are missing, `PlanError` where nobody was
        asked to decrypt it for this name.
        """
        shown, largest = self._core.combine(_only(x)), self.plan._core.largest_integer
        kind: Any = np.float64 if largest is None else np.int64 if largest < 2**63 else object
        return np.asarray(shown, dtype=kind).reshape(x.shape)

    def __repr__(self) -> str:
        return f"<sudare party {self._name} of {', '.join(self.names)}, secret hidden>"


def _only(x: Any) -> _core.Encrypted:
    if not isinstance(x, Encrypted) or isinstance(x._core, Blocks):
        raise UnsupportedError(f"parties decrypt an encrypted matrix of their plan, not {type(x).__name__}")
    if isinstance(x._core, Unused):
        raise x._core.refusal
    return x._core
