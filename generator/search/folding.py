"""Folds text, so that case and accents do not matter: NFKD, without marks, case-folded. Pure.

Folding a text is folding its characters one by one, so the whole of it fits in a table. Routers cannot compute it
(njs has no Unicode tables), and Python's depend on its version, so an index brings the table it was made with:

    {"folds": "ÀÁ…=a;…ﬁ=fi;…℃= c;…", "starts": […], "kinds": "…"}

`folds` has the characters that fold to something else, before what they fold to; a blank stands for what is no
letter. All others fold to themselves, except Hangul syllables, which have a formula. The code points from `starts[i]`
up to the next start have the kind `kinds[i]`. ASCII is left out: routers know it. The table does not depend on the
markets, so it tells nothing about them.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import Final, TypeAlias

from generator.api import contract

#: Kinds of characters, after folding: part of a word, removed, between words; letters of scripts without spaces;
#: Hangul syllables.
LETTER: Final = "l"
MARK: Final = "m"
SEPARATOR: Final = "s"
UNSPACED: Final = "u"
HANGUL: Final = "h"
_Kind: TypeAlias = str

#: Han, Hiragana and Katakana, as a set of a regular expression: scripts without spaces between words.
UNSPACED_LETTERS: Final = (
    "\u3005-\u303c\u3041-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
#: ASCII as it folds, with blanks for what is no letter; beyond it, every byte of UTF-8 as it is.
_ASCII: Final = bytes(
    [ord(chr(code).lower() if chr(code).isalnum() else " ") for code in range(0x80)] + [*range(0x80, 0x100)]
)
_BEYOND_ASCII: Final = re.compile("[^\0-\x7f]+")
#: The longest run of characters beyond ASCII that is remembered.
_KNOWN_LENGTH: Final = 32
_UNSPACED: Final = re.compile(f"[{UNSPACED_LETTERS}]")
_HANGUL: Final = range(0xAC00, 0xD7A4)
#: Beyond ASCII, where characters of several kinds are, now or in later versions of Unicode: the first four planes, and
#: the block of tags and variation selectors. Up to the next range, all have the kind of the last one.
_MIXED: Final = (range(0x80, 0x40000), range(0xE0000, 0xE1000))


def fold(text: str) -> str:
    """The text without case and accents. Folding twice changes nothing."""
    if text.isascii():
        return text.lower()
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not _is_mark(char)).casefold()


def spaced(text: str) -> str:
    """The folded text, with blanks for all that is no letter. The text must be valid Unicode."""
    # Most texts have few characters beyond ASCII, and mostly the same ones.
    plain = text if text.isascii() else _BEYOND_ASCII.sub(_of_run, text)
    return plain.encode().translate(_ASCII).decode()


def _of_run(run: re.Match[str]) -> str:
    text = run[0]
    return _known_letters(text) if len(text) <= _KNOWN_LENGTH else _letters(text)


def _letters(text: str) -> str:
    return "".join([char if is_letter(char) else " " for char in fold(text)])


_known_letters: Final = lru_cache(maxsize=1 << 14)(_letters)


def is_letter(folded: str) -> bool:
    """Whether a folded character is part of a word: a letter or a digit of any script."""
    return folded.isalnum()


def is_unspaced(folded: str) -> bool:
    """Whether a letter belongs to a script that puts no spaces between words."""
    return _UNSPACED.match(folded) is not None


@cache
def table() -> bytes:
    """The object with the table of this Python's Unicode version."""
    sources: dict[str, list[str]] = {}
    starts, kinds = [0], [SEPARATOR]
    for code, folded, kind in _characters():
        if kind != kinds[-1]:
            starts.append(code)
            kinds.append(kind)
        if folded:
            sources.setdefault(folded, []).append(chr(code))
    folds = "".join(f"{''.join(chars)}={folded};" for folded, chars in sorted(sources.items()))
    return contract.encode({"folds": folds, "starts": starts, "kinds": "".join(kinds)})


def _characters() -> Iterator[tuple[int, str, _Kind]]:
    """The code points from 0x80 on where a kind may begin, or that fold to something else: code, fold or '', kind."""
    previous = SEPARATOR
    for code in chain(*_MIXED):
        folded, kind = _folded(code)
        # What folds to something else is looked up before its kind matters, so it need not begin a run.
        previous = previous if folded else kind
        yield code, folded, previous


def _folded(code: int) -> tuple[str, _Kind]:
    char = chr(code)
    category = unicodedata.category(char)
    if category in ("Cn", "Co", "Cs"):
        return "", SEPARATOR
    if code in _HANGUL:
        return "", HANGUL
    if category != "Lo" or unicodedata.decomposition(char):
        folded = "".join(letter if is_letter(letter) else " " for letter in fold(char))
        if not folded:
            return "", MARK
        if not folded.strip():
            return "", SEPARATOR
        if folded != char:
            return folded, LETTER
    return "", UNSPACED if is_unspaced(char) else LETTER


def _is_mark(char: str) -> bool:
    return unicodedata.category(char).startswith("M")
