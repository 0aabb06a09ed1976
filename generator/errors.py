"""Every error with a message for the operator, as one tree.

    PublicMarketsError     exit 1: one sentence that names the thing and the remedy
    ├── ConfigError        a setting is missing, mistyped or contradicts another
    ├── SourceError        the database cannot be reached or lacks what we read
    │   ├── ReadError      a query failed
    │   └── FalseVersionsError     a version is not what it promises; a build then reads everything
    ├── OutputError        the output folder cannot be read or written
    │   └── DamageError    a file in it is not what the build made; a full build makes it again
    ├── StoreError         the store does not exist, or refuses a request
    ├── CheckError         `check` found errors
    ├── ClusterError       the cluster cannot be reached, went away, or has unfit workers
    ├── VerifyError        a live site cannot be read, or cannot be compared; or differs: then its exit code is 6 to 9
    ├── PreviewError       the local server has nothing to serve, or cannot listen
    ├── GuardError         exit 3: a safety guard refused; nothing was replaced
    │   ├── UnfitFilesError    the same, found before anything was published
    │   ├── CostError      publishing would exceed guards.max_monthly_cost
    │   └── OtherSiteError     publish.target holds the site of another base_url
    ├── BusyError          exit 4: another run holds the folder or the store
    └── OutcomeUnknownError    exit 5: the store did not say whether a write took effect

A library's error is wrapped once, in the module that owns the library, with `raise … from error`.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

#: What makes a file of the output folder again: only a full build compares every byte.
_MENDED_BY: Final = "run `public-markets rebuild`, or `public-markets build --full`"


class PublicMarketsError(Exception):
    """Base of all errors whose message is for the operator."""

    exit_code: ClassVar[int] = 1


class ConfigError(PublicMarketsError):
    """The configuration cannot be used."""


class SourceError(PublicMarketsError):
    """The database cannot be read as configured. `may_pass`: a connection failed, so another attempt may succeed."""

    may_pass = False


class ReadError(SourceError):
    """A query failed, for example because a view divides by zero. `failed` is the message without the remedy."""

    def __init__(self, failed: str, remedy: str) -> None:
        super().__init__(failed, remedy)
        self.failed = failed

    def __str__(self) -> str:
        return "; ".join(self.args)


class FalseVersionsError(SourceError):
    """A version of these markets (ids) did not change although rows that it stands for did."""

    def __init__(self, markets: Sequence[str]) -> None:
        super().__init__(f"a version of market {markets[0]} did not change, but its rows did")
        self.markets = markets


class OutputError(PublicMarketsError):
    """The output folder cannot be read or written."""


class DamageError(OutputError):
    """A file of the output folder is not what the build made; `place` is its path or key."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: altered since it was built; {_MENDED_BY}"


class StoreError(PublicMarketsError):
    """The store does not exist, or refuses a request; retrying does not help."""


class CheckError(PublicMarketsError):
    """`check` found errors."""


class ClusterError(PublicMarketsError):
    """The cluster cannot be reached, went away, or has unfit workers, such as those of another version."""


class VerifyError(PublicMarketsError):
    """A live site cannot be read, or not be compared with its dump."""


class PreviewError(PublicMarketsError):
    """The local server has nothing to serve, or cannot listen."""


#: The guards of builds and of publishes, as `--accept` names them.
BUILD_GUARDS: Final = (
    "closed", "fills", "growth", "invalid", "jumps", "outcomes", "questions", "shrink", "times", "volumes",
)  # fmt: skip
PUBLISH_GUARDS: Final = ("cost", "demo", "older", "other-site", "shrink")


class GuardError(PublicMarketsError):
    """A guard refused a state that looks like an accident.

    `visible` are the markets (ids) and questions (references) that the database shows, bad ones included; None when
    unknown.
    """

    exit_code = 3

    def __init__(self, message: str, visible: frozenset[str] | None = None) -> None:
        super().__init__(message)
        self.visible = visible


class UnfitFilesError(GuardError):
    """A file that is to be published is missing, or not what the build made; `place` is its path, or its folder's."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: missing or altered since it was built; {_MENDED_BY}"


class CostError(GuardError):
    """Publishing would exceed guards.max_monthly_cost."""


class OtherSiteError(GuardError):
    """The target of a publish holds the site of another base_url; nothing in it or of it may be used."""


class BusyError(PublicMarketsError):
    """Another run holds the folder or the store."""

    exit_code = 4


class OutcomeUnknownError(PublicMarketsError):
    """The store did not say whether a write took effect; the next run finds out."""

    exit_code = 5
