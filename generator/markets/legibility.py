"""Whether a text is what it looks like: characters that show nothing, and words of letters that look alike. Pure.

Both are in honest texts, too: emoji are joined, Persian and Indic words have joiners, Thai and Khmer part words by
spaces of no width, Hebrew and Arabic texts need marks of direction; and some words have letters of several scripts.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

#: What shows nothing, by Unicode's property Default_Ignorable_Code_Point.
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: Those that change the direction of texts; overrides are `market.overrides_direction`.
_DIRECTIONS: Final = "\u061c\u200e\u200f\u202a-\u202c\u2066-\u2069"
_OVERRIDES: Final = "\u202d\u202e"
_RIGHT_TO_LEFT: Final = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
#: Scripts whose letters join, or that part words by spaces of no width: from Arabic to Khmer and Mongolian.
_JOINING: Final = (
    "\u0600-\u109f\u1700-\u1ab0\u1b00-\u1c7f\ua800-\uab2f\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00011fff\U0001e900-\U0001eeff"
)
_SYMBOLS: Final = "\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"

#: Alphabets with letters that look like those of others. Of Greek, only such letters: `Δx`, `kΩ` and `μs` are honest.
_LATIN: Final = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1d25\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff\uab30-\uab64"
)
_GREEK: Final = (
    "\u0370-\u0373\u0376-\u0377\u037f\u0386-\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03aa-\u03b1\u03b3\u03b5\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c3-\u03c5\u03c7\u03c9-\u03ce\u03f2\u03f3\u03f9"
    "\u1f00-\u1fff"
)
_OTHERS: Final = (
    _GREEK,
    "\u0400-\u052f\u1c80-\u1c8f\ua640-\ua69f",  # Cyrillic
    "\u0531-\u0588",  # Armenian
    "\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2d",  # Georgian
    "\u13a0-\u13ff\uab70-\uabbf",  # Cherokee
    "\u1400-\u167f",  # Canadian syllabics
    "\u2c80-\u2cff",  # Coptic
    "\ua4d0-\ua4ff",  # Lisu
    "\U00010400-\U0001044f",  # Deseret
)
_ALPHABETS: Final = (_LATIN, *_OTHERS)
#: Scripts that may stand beside Latin letters without a space, but not between them: from Hebrew to Sinhala.
_BESIDE: Final = "\u05d0-\u05f4\u0620-\u0dff"


def _any_of(parts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(parts))


_HIDDEN: Final = re.compile(f"[{_INVISIBLE}]")
#: Characters that show nothing where a text needs them: emoji with their joiners, variants and tags; what stands
#: beside letters that join; variants of anything but letters of alphabets.
_NEEDED: Final = _any_of((
    f"(?<=[{_SYMBOLS}\ufe0f])\u200d(?=[{_SYMBOLS}])",
    "(?<=\U0001f3f4)[\U000e0020-\U000e007e]+\U000e007f",
    f"(?<=[{_JOINING}])[\u180b-\u180f\u200b-\u200d\u2060]|[\u200b-\u200d](?=[{_JOINING}])",
    rf"(?<![\s{''.join(_ALPHABETS)}])(?<!^)[\ufe00-\ufe0f\U000e0100-\U000e01ef]",
    f"[{_OVERRIDES}]",
))  # fmt: skip
#: Marks of direction, in a text that has both: anywhere but within a word of Latin letters.
_NEEDED_DIRECTIONS: Final = _any_of((f"(?<![{_LATIN}])[{_DIRECTIONS}]", f"[{_DIRECTIONS}](?![{_LATIN}])"))
_HAS_RIGHT_TO_LEFT: Final = re.compile(f"[{_RIGHT_TO_LEFT}]")
#: What may be between the letters of a word, digits aside: accents and what shows nothing.
_GAP: Final = rf"[\d\u0300-\u036f{_INVISIBLE}]*"
_HAS_OTHERS: Final = re.compile(f"[{''.join(_OTHERS)}{_BESIDE}]")
_MIXED: Final = _any_of((
    *(f"[{letters}]{_GAP}(?![{letters}])[{''.join(_ALPHABETS)}]" for letters in _ALPHABETS),
    f"[{_LATIN}]{_GAP}[{_BESIDE}]+{_GAP}[{_LATIN}]",
))  # fmt: skip


def shown(text: str) -> str:
    """The text without what shows nothing: format characters (Cf), and other characters that are to be ignored."""
    if text.isascii():
        return text
    return "".join(char for char in _HIDDEN.sub("", text) if unicodedata.category(char) != "Cf")


def hides_characters(text: str) -> bool:
    """Whether the text has a character that shows nothing, where no script and no emoji needs it."""
    if text.isascii() or not _HIDDEN.search(text):
        return False
    rest = _NEEDED.sub("", text)
    return bool(_HIDDEN.search(_NEEDED_DIRECTIONS.sub("", rest) if _HAS_RIGHT_TO_LEFT.search(rest) else rest))


def mixes_scripts(text: str) -> bool:
    """Whether a word of the text has letters of two scripts that look alike."""
    return _HAS_OTHERS.search(text) is not None and _MIXED.search(text) is not None
