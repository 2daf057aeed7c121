"""Results that others will see."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from . import _core
from ._errors import ReleaseError, UnsupportedError

__all__ = ["Release"]


@dataclass(frozen=True)
class Release:
    """How many results will be shown under one key, and how well the noise on them hides their errors.

    Give it to `plan`, `context` or `table`, and decrypt with `release=True` what somebody else will
    see, with `private=True` what nobody else will. `count` is a number of results, from 1 to 2**24;
    `security` is in bits, statistical, from 20 to 64. More of either is more noise, which is part of the
    promised error. The count is kept with the secret key, in its bytes too.

    >>> Release(count=10)
    Release(count=10, security=30)
    """

    count: int
    """Results that will be shown, in the life of the key."""
    security: int = 30
    """Bits of statistical security of all of them together."""

    def __post_init__(self) -> None:
        _policy(self)


def _policy(release: Release) -> _core.Release:
    # What is out of the range of a machine word is refused like what is out of the policy's.
    count, security = (max(0, min(operator.index(n), 2**31)) for n in (release.count, release.security))
    return _core.Release(count, security)


def declared(release: Any) -> _core.Release | None:
    """The policy of a `Release`, if there is one."""
    if release is None:
        return None
    if not isinstance(release, Release):
        raise UnsupportedError(f"a release is declared as sudare.Release(count, security), not {release!r}")
    return _policy(release)


def wanted(release: Any, private: Any, declared: bool) -> bool:
    """Whether a decryption is one for release: to be said where releases are declared.

    Raises `ReleaseError` where they are and neither word is said, or both are, `UnsupportedError` for what is
    no truth value.
    """
    if not isinstance(private, bool):
        raise UnsupportedError(f"private is True or False, not {type(private).__name__}")
    if not isinstance(release, bool):
        raise UnsupportedError(
            "releases are declared where parameters are chosen: release=Release(count, security) of a plan,"
            " context or table; decrypt with release=True"
        )
    if release and private:
        raise ReleaseError(
            "a decryption is for release or private, not both: drop release=True or private=True"
        )
    if declared and not release and not private:
        raise ReleaseError(
            "releases are declared here: decrypt with release=True what others will see,"
            " with private=True what only the owner of the key will"
        )
    return release
