"""Passwords in a database URL: finding them, and removing them from messages. Pure."""

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
