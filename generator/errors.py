"""Everything the job can refuse to do, as one tree.

    PublicMarketsError     exit 1: one sentence that names the thing and the remedy
    ├── ConfigError        a setting is missing, mistyped or contradicts another
    ├── SourceError        the database cannot be reached or lacks what we read
    ├── OutputError        the output folder cannot be read or written
    ├── StoreError         the store refuses, or does not exist
    ├── CheckError         a check found something that must be mended
    ├── PreviewError       the local server has nothing to serve or nowhere to listen
    ├── GuardError         exit 3: a safety guard refused; nothing was replaced
    │   └── CostError      publishing would cost more than the owner wants to pay
    ├── BusyError          exit 4: another run is at work on the same folder or store
    └── OutcomeUnknownError    exit 5: the store did not say whether a write took effect

A library's error is wrapped once, in the module that owns the library, with `raise … from error`.
"""

from typing import ClassVar


class PublicMarketsError(Exception):
    """Base of all errors whose message is written for the person who ran the command."""

    exit_code: ClassVar[int] = 1


class ConfigError(PublicMarketsError):
    """The configuration cannot be used."""


class SourceError(PublicMarketsError):
    """The database cannot be read as configured."""


class OutputError(PublicMarketsError):
    """The output folder cannot be read or written."""


class StoreError(PublicMarketsError):
    """The store refuses, or does not exist; trying again would not help."""


class CheckError(PublicMarketsError):
    """A check found something that must be mended."""


class PreviewError(PublicMarketsError):
    """The local server has nothing to serve or nowhere to listen."""


class GuardError(PublicMarketsError):
    """A guard refused a state that looks like an accident.

    `visible` are the markets that the database shows, broken ones included; None when that is not known.
    """

    exit_code = 3

    def __init__(self, message: str, visible: frozenset[str] | None = None) -> None:
        super().__init__(message)
        self.visible = visible


class CostError(GuardError):
    """Publishing would cost more than the owner wants to pay."""


class BusyError(PublicMarketsError):
    """Another run holds the folder or the store."""

    exit_code = 4


class OutcomeUnknownError(PublicMarketsError):
    """The store did not say whether a write took effect; running again finds out."""

    exit_code = 5
