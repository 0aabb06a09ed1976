"""The local form of an object, as a build renders it. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Artifact:
    """One mutable object: its key and its bytes."""

    key: str
    body: bytes
