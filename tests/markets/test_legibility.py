"""Which texts are not what they look like, and which honest ones have unseen characters or several scripts."""

# ruff: noqa: RUF001 - letters that look alike are what this is about

import pytest

from generator.markets.legibility import hides_characters, mixes_scripts, shown

HONEST = (
    "Will it rain?",
    "Größe über façade, Việt Nam, Hawaiʻi, nai\u0308ve",
    "Пойдёт ли дождь? IT-компания, дом №5, Яндекс™, 5мм, 3D, iPhone'ов",
    "Τι χρόνος; μTorrent, µs, kΩ, Δx, πr, λmax",
    "東京でJリーグのTシャツがA股B股, KBO리그가 AI는, 葛\U000e0100城",
    "בTwitter של, \u200fABC\u200e עברית \u2067שלום\u2069",
    "بازی می\u200cخواهم, क्\u200dष, ไทย\u200bGoogle\u200bไทย, ខ្ញុំ\u200bទៅ",
    "👩\u200d⚕\ufe0f 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f ❤\ufe0f\u200d🔥 1\ufe0f⃣ ℹ\ufe0f 👩🏽\u200d🤝\u200d👨🏿",  # noqa: E501
)
HIDING = (
    "so\u200bng", "\ufeffsong", "song\u200b", "con\u00adtest", "so\u200dng", "so\u200eng", "\u200eWill", "so\u2060ng",
    "song\u3164contest", "so\u034fng", "s\ufe0fong", "hi\U000e0041\U000e0042", "so\u200eng שלום", "песня\u200b да",
    "東京\u200b大阪", "\u200d👩",
)  # fmt: skip
MIXING = (
    "s\u043eng", "\u0421\u041eVID", "s\u03bfng", "x\u03c1\u03cc\u03bd\u03bf\u03c2", "м\u03bfсква", "s\u0585ng",
    "s\ua4f3ng", "s\u05e1ng", "Cov\u0456d19", "5\u043e5s", "s\u200b\u043eng", "o\u0301\u043e",
)  # fmt: skip


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_text_of_any_script_is_what_it_looks_like(text: str) -> None:
    assert (hides_characters(text), mixes_scripts(text)) == (False, False)


@pytest.mark.parametrize("text", HIDING)
def test_a_character_that_shows_nothing_is_noticed_where_no_script_needs_it(text: str) -> None:
    assert hides_characters(text)
    assert not mixes_scripts(text)


@pytest.mark.parametrize("text", MIXING)
def test_a_word_with_letters_of_two_alphabets_is_noticed(text: str) -> None:
    assert mixes_scripts(f"Will the {text} contest?")
    assert not mixes_scripts(" ".join(text)), "each letter is a word of its own"


def test_what_shows_nothing_is_not_shown() -> None:
    assert shown("s\u00ado\u200bn\u2063g\u3164 \ufeffcontest\u0600") == "song contest"
    assert shown("Größe 🏴") == "Größe 🏴"
