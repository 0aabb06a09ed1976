"""What `publish.target` may be, and the two things it can mean: a bucket with a prefix, or a directory. Pure."""

import re
from typing import Final
from urllib.parse import quote, unquote, unquote_plus

# Both split a URL as SQLAlchemy does: a password may hold `/`, `?` and `#`, where urllib would end the host.
_USER_INFO: Final = re.compile(r"[^:]*://[^:/]*:([^@]*)@")
_OPTION: Final = re.compile(r"[?&](?:ssl)?password=([^&]*)", re.IGNORECASE)
#: Where a driver may split a password that it takes for several things.
_SEPARATORS: Final = re.compile(r"[@/:?#&=\s]+")
#: Shorter parts occur in too many words to be removed from messages.
_SHORTEST_PART: Final = 4


def is_ambiguous(url: str) -> bool:
    """Whether the password may hold an `@`: then it is unknown where it ends and the host begins."""
    found = _USER_INFO.match(url)
    return found is not None and "@" in url[found.end() :]


def found_in(url: str) -> frozenset[str]:
    """Every password in the URL, as it is written there."""
    user_info = _USER_INFO.match(url)
    written = {*_OPTION.findall(url), *([user_info[1]] if user_info else [])}
    return frozenset(written - {""})


def hidden(text: str, url: str) -> str:
    """The text with `***` for the URL's passwords, in every form and part in which a driver may repeat them."""
    forms = {form for password in found_in(url) for form in _forms(password)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "***")
    return text


def _forms(written: str) -> set[str]:
    plain = {unquote(written), unquote_plus(written)}
    escaped = {password.replace("\\", "\\\\").replace("'", "\\'") for password in plain}
    whole = {written, *plain, *escaped, *(quote(password, safe="") for password in plain)}
    whole |= {repr(password)[1:-1] for password in plain} | {" ".join(form.split()) for form in whole}
    parts = {part for form in whole for part in _SEPARATORS.split(form) if len(part) >= _SHORTEST_PART}
    return (whole | parts) - {""}


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
