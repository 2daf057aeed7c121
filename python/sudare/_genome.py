"""Private search in haplotype panels: `sudare.genome`.

A client asks a server for the longest match of its haplotype in the server's panel. The server learns neither
the haplotype nor where in a list of candidates it starts; the client learns the length of the match.

>>> panel = Panel.from_vcf("panel.vcf.gz", "panel.sudare", kinds="snps")  # doctest: +SKIP
>>> client = Client()  # doctest: +SKIP
>>> query = client.query(panel.sites, "me.vcf.gz", sample="ME", region="20:1100000-1105000")  # doctest: +SKIP
>>> answer = Server(panel).search(query.data)  # doctest: +SKIP
>>> client.answer(query, answer)["matched_sites"]  # doctest: +SKIP
array([37], dtype=uint32)
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._errors import InputError, ShapeError, UnsupportedError
from ._files import PathLike as Path
from ._files import Source, Travels, octets
from ._keys import SecretHolder
from ._progress import progress
from ._stored import size
from ._values import array, count, real

__all__ = ["ANSWER", "Client", "Panel", "Policy", "Query", "Server", "Sites"]

Bits = NDArray[np.bool_]

#: What `Client.answer` returns: an array of such records, which pandas takes as it is.
#: `end_pos` is the last site that matches, 0 where none does.
ANSWER = np.dtype(
    [
        ("sample", object),
        ("hap", np.uint8),
        ("chrom", object),
        ("start_pos", np.uint32),
        ("end_pos", np.uint32),
        ("n_sites", np.uint32),
        ("matched_sites", np.uint32),
        ("status", object),
    ]
)


@dataclass(frozen=True)
class Policy:
    """What a panel's owner answers: limits on what answers give away."""

    #: Haplotypes that a match has to be shared by, at least.
    least_eps: int = 1
    #: Sites of a window, at most.
    most_sites: int = 4096
    #: Candidate starts, at most.
    most_starts: int = 65536

    def _numbers(self) -> tuple[int, int, int]:
        return (
            _number(self.least_eps, "least_eps"),
            _number(self.most_sites, "most_sites"),
            _number(self.most_starts, "most_starts"),
        )


def _number(value: Any, name: str) -> int:
    """A number from 1 on that 32 bits hold."""
    found = count(value, name)
    if not 1 <= found < 1 << 32:
        raise InputError(f"{name} is a whole number from 1 to {(1 << 32) - 1}, not {value!r}")
    return found


def _shape(sites: int, starts: int, batch: int, eps: int) -> tuple[int, int, int, int]:
    return _number(sites, "sites"), _number(starts, "starts"), _number(batch, "batch"), _number(eps, "eps")


class Sites(Travels):
    """The public description of a panel: its sites, and nothing of any haplotype."""

    def __init__(self, core: _core.GenomeSites) -> None:
        self._core = core

    @classmethod
    def from_bytes(cls, data: Source) -> Sites:
        """A description from `sites.to_bytes()`: bytes-like, a path or a binary file.

        Raises `FormatError` for anything damaged.
        """
        return cls(_core.GenomeSites.from_bytes(octets(data)))

    def to_bytes(self) -> bytes:
        """Its bytes, for clients."""
        return self._core.to_bytes()

    def _saved(self) -> bytes:
        return self.to_bytes()

    @property
    def hash(self) -> str:
        """The panel's name."""
        return self._core.hash

    @property
    def haplotypes(self) -> int:
        """Haplotypes of the panel."""
        return self._core.outline()[0]

    @property
    def assembly(self) -> str:
        """The assembly, or an empty string."""
        return self._core.outline()[2]

    @property
    def contigs(self) -> dict[str, int]:
        """Contigs and their numbers of sites."""
        return dict(self._core.outline()[3])

    @property
    def policy(self) -> Policy:
        """What the panel's owner answers."""
        return Policy(*self._core.outline()[4])

    def __len__(self) -> int:
        return self._core.outline()[1]

    def table(self) -> NDArray[np.void]:
        """All sites as records: chrom, pos, ref, alt."""
        chrom, pos, ref, alt = self._core.columns()
        out = np.empty(len(pos), [("chrom", object), ("pos", np.uint32), ("ref", object), ("alt", object)])
        out["chrom"], out["pos"], out["ref"], out["alt"] = chrom, pos, ref, alt
        return out

    def window(self, region: str) -> range:
        """The sites in a region such as `chr20:1000000-1100000`."""
        return range(*self._core.window(region))

    def symbols(
        self,
        variants: Path,
        sample: str,
        hap: int,
        window: range,
        *,
        absent_is_reference: bool = False,
        assembly: str | None = None,
    ) -> Bits:
        """The alleles of a sample's haplotype (1 or 2) at these sites; True is ALT.

        Raises `InputError` for a haplotype other than 1 or 2, or a sample or a site that the file has
        not.
        """
        if window.step != 1 or not 0 <= window.start <= window.stop <= len(self):
            raise InputError(f"a window is a range of the panel's {len(self)} sites, not {window}")
        return self._core.symbols(
            _there(variants),
            sample,
            _number(hap, "hap"),
            (window.start, window.stop),
            absent_is_reference=absent_is_reference,
            assembly=assembly,
        )

    def plan(self, sites: int, *, starts: int = 1, batch: int = 1, eps: int = 1) -> str:
        """The protocols compared for such a search, by what is public; the best comes first."""
        return self._core.plan(*_shape(sites, starts, batch, eps))[1]

    def __reduce__(self) -> tuple[Any, ...]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return Sites.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"<sudare genome sites of panel {self.hash}, {self.haplotypes} haplotypes, {len(self)} sites>"


class Panel:
    """A haplotype panel in a file: the server's secret."""

    def __init__(self, core: _core.GenomePanel) -> None:
        self._core = core
        self._sites: Sites | None = None

    @classmethod
    def from_vcf(
        cls,
        variants: Path,
        output: Path,
        *,
        region: str | None = None,
        samples: Sequence[str] | None = None,
        without: Sequence[str] | None = None,
        kinds: Literal["biallelic", "skip-others", "snps"] = "biallelic",
        maf: float = 0.0,
        assembly: str | None = None,
        policy: Policy | None = None,
    ) -> Panel:
        """Builds a panel from phased genotypes (VCF or BCF) in a stream, and opens it.

        `samples` are those to keep, `without` those to leave out. With `kinds="biallelic"` any other record
        is refused; the others leave them out.

        Raises `InputError` for genotypes that are not phased, not complete or not text of that kind.
        """
        if kinds not in ("biallelic", "skip-others", "snps"):
            raise InputError(f"kinds is 'biallelic', 'skip-others' or 'snps', not {kinds!r}")
        if samples is not None and without is not None:
            raise InputError("give samples= or without=, not both")
        with progress("reading records") as report:
            core = _core.GenomePanel.build(
                _there(variants),
                os.fspath(output),
                region=region,
                keep=None if samples is None else list(samples),
                leave=None if without is None else list(without),
                kinds=kinds,
                maf=real(maf, "maf"),
                assembly=assembly,
                policy=(policy or Policy())._numbers(),
                progress=report,
            )
        return cls(core)

    @classmethod
    def open(cls, path: Path) -> Panel:
        """A panel file of before; its columns are read as they are needed."""
        return cls(_core.GenomePanel.open(_there(path)))

    @property
    def sites(self) -> Sites:
        """The public description, for clients."""
        if self._sites is None:
            self._sites = Sites(self._core.sites())
        return self._sites

    @property
    def hash(self) -> str:
        """Its name."""
        return self._core.hash

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self._core.nbytes

    def check(self) -> None:
        """Reads all of it and compares checksums."""
        self._core.check()

    def longest(self, start: int, symbols: ArrayLike, eps: int = 1) -> tuple[int, int]:
        """The longest match in the clear from a site on, and how many haplotypes share it.

        Raises `InputError` for a start that there is not, `ShapeError` for more symbols than there
        are sites.
        """
        return self._core.longest(count(start, "start"), _symbols(symbols), _number(eps, "eps"))

    def search_class(self, sites: int, *, eps: int = 1, threads: int = 0) -> int:
        """The class that `Server.search` pads to: the most work of any window, a power of two.

        Raises `InputError` for a start or a length that the panel has not.
        """
        with progress("looking at windows") as report:
            return self._core.search_class(_number(sites, "sites"), _number(eps, "eps"), threads, report)

    def plan(self, sites: int, *, starts: int = 1, batch: int = 1, eps: int = 1) -> str:
        """The protocols compared for such a search of this panel; the best comes first."""
        return self._core.plan(*_shape(sites, starts, batch, eps))[1]

    def __repr__(self) -> str:
        of = f"{self.sites.haplotypes} haplotypes, {len(self.sites)} sites"
        return f"<sudare genome panel {self.hash}, {of}>"


def _symbols(x: ArrayLike) -> Bits:
    values = array(x)
    if values.ndim != 1:
        raise ShapeError(f"symbols have one axis, not {values.ndim}")
    if values.dtype != np.bool_:
        if values.dtype.kind not in "iu" or not np.isin(values, (0, 1)).all():
            raise InputError("symbols are 0 or 1: whether the haplotype has ALT")
        values = values.astype(np.bool_)
    return np.ascontiguousarray(values)


@dataclass(frozen=True)
class Query:
    """An encrypted query: `data` is for the server, `private` for the client alone, to read the answer."""

    data: bytes = field(repr=False)
    private: bytes = field(repr=False)
    sites: Sites


class Client(SecretHolder[_core.GenomeClient]):
    """Holds the secret key of one protocol: asks, and reads answers.

    Keys of the protocols "lookup" and "simd" are for windows of up to `sites` sites, "simd" without
    hidden starts for `hidden=False`.
    """

    _again = "genome.Client.from_secret_bytes(secret)"

    def __init__(
        self,
        protocol: Literal["trie", "lookup", "simd"] = "trie",
        *,
        sites: int = 100,
        hidden: bool = True,
        threads: int = 0,
    ) -> None:
        self._core = _core.GenomeClient(protocol, _number(sites, "sites"), hidden, threads)

    @classmethod
    def from_secret_bytes(cls, secret: Source, threads: int = 0) -> Client:
        """The client again from its secret key: bytes-like, a path or a binary file.

        Raises `FormatError` for anything damaged or of another kind.
        """
        client = cls.__new__(cls)
        if isinstance(secret, (str, os.PathLike)):
            client._core = _core.GenomeClient.load(secret, threads)
        else:
            client._core = _core.GenomeClient.from_secret_bytes(octets(secret), threads)
        return client

    @property
    def protocol(self) -> str:
        """Its protocol."""
        return self._core.protocol

    def evaluation_keys(self) -> bytes:
        """What a server needs besides queries; for "trie" only for circuit-private answers."""
        return self._core.evaluation_keys()

    def query(
        self,
        sites: Sites,
        variants: Path | None = None,
        *,
        sample: str | Sequence[str] = "",
        hap: int | Sequence[int] = 1,
        region: str | None = None,
        symbols: ArrayLike | None = None,
        start: int | None = None,
        among: int = 1,
        within: str | None = None,
        eps: int = 1,
        circuit_private: bool = False,
        absent_is_reference: bool = False,
        assembly: str | None = None,
    ) -> Query:
        """Encrypts the haplotype of a sample in a file, or `symbols` from site `start` on.

        The start is hidden among `among` sites of the region `within` (the whole panel without one), which
        follow from the key and the start: queries from one place have one list.
        Several samples and haplotypes make one query of the protocol "simd".

        Raises `InputError` for a sample or a start that there is not, `ShapeError` for more symbols
        than there are sites.
        """
        asked: list[tuple[str, int, list[bool]]] = []
        if symbols is not None:
            if start is None or variants is not None or region is not None:
                raise InputError("symbols come with a start, and without a file and a region")
            if not isinstance(sample, str):
                raise InputError("symbols are those of one sample; give its name alone")
            asked.append((sample, _number(hap, "hap"), _symbols(symbols).tolist()))
        else:
            if variants is None or region is None or start is not None:
                raise InputError("give a file of variants, a sample and a region; or symbols and a start")
            window = sites.window(region)
            if not window:
                raise InputError(f"the panel has no site in {region}; take a wider region")
            start = window.start
            for name in [sample] if isinstance(sample, str) else sample:
                for number in hap if isinstance(hap, Sequence) else [hap]:
                    found = sites.symbols(
                        variants,
                        name,
                        number,
                        window,
                        absent_is_reference=absent_is_reference,
                        assembly=assembly,
                    )
                    asked.append((name, number, found.tolist()))
        decoys = range(len(sites)) if within is None else sites.window(within)
        data, private = self._core.query(
            sites._core,
            count(start, "start"),
            asked,
            among=_number(among, "among"),
            within=(decoys.start, decoys.stop),
            eps=_number(eps, "eps"),
            circuit_private=circuit_private,
        )
        return Query(data, private, sites)

    def answer(self, query: Query, answer: Source) -> NDArray[np.void]:
        """Decrypts an answer: records as `ANSWER` says, one for each haplotype asked.

        Raises `FormatError` for anything damaged or an answer to nothing that was asked,
        `UnsupportedError` for what holds no bytes.
        """
        if not isinstance(query, Query):
            raise UnsupportedError(f"an answer is read with its query, not with {type(query).__name__}")
        return np.array(self._core.answer(query.sites._core, query.private, octets(answer)), ANSWER)

    def __repr__(self) -> str:
        return f"<sudare genome client {self.protocol}, key {self.key_id}, secret key hidden>"


class Server:
    """Answers queries on a panel; holds nothing secret of any client.

    `store` is a folder that keeps the tables of windows, `memory` the bytes of them, or a size as "64 MB",
    that are held beyond those in use (256 MiB without it), `most_queries` the number answered under one key.
    """

    def __init__(
        self,
        panel: Panel,
        *,
        store: Path | None = None,
        memory: int | str | None = None,
        most_queries: int | None = None,
        threads: int = 0,
    ) -> None:
        self.panel = panel
        folder = None if store is None else os.fspath(store)
        most = None if most_queries is None else count(most_queries, "most_queries")
        kept = None if memory is None else size(memory, "memory")
        self._core = _core.GenomeServer(panel._core, folder, kept, most, threads)
        #: What the last search counted: lookups, bootstraps, products.
        self.counters: dict[str, int] = {}

    @property
    def threads(self) -> int:
        """How many threads work."""
        return self._core.threads

    def add_keys(self, keys: Source) -> str:
        """Takes a client's evaluation keys over; returns the key's name.

        Raises `FormatError` for anything damaged or of another kind.
        """
        return self._core.add_keys(octets(keys))

    def search(self, query: Source | Query, *, pad: int | None = None) -> bytes:
        """Answers a query; with `pad` the work for each start is that of the class.

        Raises `FormatError` for a damaged query, `InputError` for a class that is no whole number,
        `MissingKeyError` for a query whose keys were not added.
        """
        data = query.data if isinstance(query, Query) else octets(query)
        work = None if pad is None else count(pad, "pad")
        with progress("searching") as report:
            answer, counted = self._core.search(data, work, report)
        self.counters = dict(counted)
        return answer

    def __repr__(self) -> str:
        return f"<sudare genome server of {self.panel!r}, {self.threads} threads>"


def _there(path: Path) -> str:
    """A file's name, if there is such a file: what reads it names none."""
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return name
