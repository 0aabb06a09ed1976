"""What `publish.target` may be, and the two things it can mean: a bucket with a prefix, or a directory. Pure."""

import re
from typing import Final

_S3: Final = "s3://"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
#: How an address begins; no directory does, unless it is written with `./` or from the root.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_EITHER: Final = "write s3://bucket/prefix or a directory"
_ADDRESS: Final = "write s3://bucket/prefix, and the address of the store in publish.endpoint_url"
_BY_SCHEME: Final = {
    "file": "write the path of the directory alone, without file:",
    "http": _ADDRESS,
    "https": _ADDRESS,
    "s3": "write s3://bucket/prefix, in lower case and with two slashes; a directory of that name begins with ./",
}


def checked(text: str) -> str:
    """The target itself; raise ValueError, which does not quote it, if it cannot be one."""
    if text != text.strip():
        raise ValueError("remove the spaces around it")
    if text.startswith("~"):
        raise ValueError("write the whole path of the directory: nothing replaces ~ here")
    if text.startswith(_S3):
        _require_bucket_name(text.removeprefix(_S3).partition("/")[0])
    elif scheme := _SCHEME.match(text):
        raise ValueError(_BY_SCHEME.get(scheme[1].lower(), _EITHER))
    return text


def _require_bucket_name(name: str) -> None:
    if not name:
        raise ValueError(_EITHER)
    if not _BUCKET.fullmatch(name):
        raise ValueError(
            "correct the name of the bucket: 3 to 63 lower-case letters, digits, dots and hyphens, with a letter or a "
            "digit at both ends"
        )


def bucket(target: str) -> tuple[str, str] | None:
    """The bucket, and the prefix of all keys in it: empty, or ending with a slash. None for a directory."""
    if not target.startswith(_S3):
        return None
    name, _, folder = target.removeprefix(_S3).partition("/")
    prefix = folder.strip("/")
    return name, f"{prefix}/" if prefix else ""
