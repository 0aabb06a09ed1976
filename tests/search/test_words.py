"""What a word is, in many scripts: what readers may expect of `q`, as docs/extended-variant.md says."""

import json
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from generator.edge import router
from tests.support.readers import search
from tests.support.readers.lists import read
from tests.support.readers.pages import PAGES
from tests.support.readers.search import InQuickjs, Market
from tests.support.sites.builds import EXTENDED, make_config

#: Texts, each with searches that find it, and others that do not.
EXPECTED: Final = {
    "Will BTC be above $100,000 (or 3.5%)?": (["$100,000", "100", "000", "3.5%", "3,5", "BTC>100"], ["100000", "10"]),
    "Don’t say l'été, O'Brien": (["don't", "don", "t", "été", "ete", "o brien", "brien"], ["dont", "obrien"]),
    "COVID-19, U.S. e-mail #tag snake_case": (["covid", "covid-19", "u.s.", "mail", "tag", "case"], ["covid19", "us"]),
    "EU, Europe": (["eu", "EUR", "euro"], ["e", "urope"]),
    "Straße": (["strasse", "STRASSE", "straße", "str"], ["ss", "ß"]),
    "Χάρης ΟΔΥΣΣΕΥΣ": (["χαρησ", "ΧΆΡΗΣ", "οδυσσεύς", "οδυσσ"], []),
    "İstanbul IŞIK": (["istanbul", "ISTANBUL", "isik", "işik"], ["ıstanbul", "ışık"]),
    "Łódź Đặng Østergård Æsir": (["łodz", "ŁÓDŹ", "đang", "østergard", "æsir"], ["lodz", "dang", "ostergard", "aesir"]),
    "Ёлка, Київ": (["елка", "ёлка", "КИЇВ"], ["елки"]),
    "ＦＩＦＡ　２０２６ ﬁnal CO₂ x² ½ Ⅳ": (["fifa 2026", "final", "ﬁn", "co2", "x2", "1/2", "iv"], ["ﬁ", "co"]),
    "🗳️ vote 1️⃣ 🇺🇸": (["vote", "🗳️ vote", "1"], []),
    "한국 선거 비": (["한국", "한", "한", "선거", "선", "비"], ["하", "국", "비가"]),
    "대한민국": (["대한", "대하", "대한민"], ["대", "하"]),
    "2026年の衆議院選挙": (["選挙", "選", "衆議院", "2026年", "議院選挙", "2026"], ["挙選", "衆院", "26"]),
    "ガンダム": (["ｶﾞﾝﾀﾞﾑ", "カンタム", "ダム"], ["がんだむ", "ガム"]),
    "𠮷野家": (["𠮷野", "𠮷", "家"], ["吉野家"]),
    "การเลือกตั้งทั่วไป": (["การเลือกตั้ง", "การ"], ["เลือกตั้ง"]),
    "मोदी चुनाव": (["मोदी", "चुनाव"], ["मो", "चुना"]),
    "الانتخابات مُحَمَّد أحمد": (["محمد", "الانت", "احمد"], ["انتخابات"]),
    "שָׁלוֹם": (["שלום", "שלו"], ["לום"]),
    "Bundes\u00adtag \u200fright\u200e zero\u200dwidth": (["bundes", "tag", "right", "width"], ["bundestag"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def edge() -> InQuickjs:
    return InQuickjs(search.core())


def test_words_are_found_as_readers_are_told(edge: InQuickjs) -> None:
    texts = list(EXPECTED)
    objects = search.objects([Market((text,)) for text in texts])
    wrong = []
    for number, (found_by, not_found_by) in enumerate(EXPECTED.values()):
        for q in (*found_by, *not_found_by):
            answers = edge.walk(objects, f"q={quote(q)}&status=all&sort=new&limit=100")
            item = search.item(number, Market((texts[number],)))
            if (item in search.items_of(answers)) != (q in found_by):
                wrong.append((texts[number], q))
    assert wrong == []


def test_the_searches_that_the_docs_show_find_something_in_the_demo(extended_output: Path, tmp_path: Path) -> None:
    shown = {
        query for page in PAGES.values() for query in re.findall(r"/v1/public/markets\?([^'\s]*\bq=[^'\s]*)'", page)
    }
    assert len(shown) > 1
    demo = InQuickjs(router.render(make_config(tmp_path, **EXTENDED)))
    for query in shown:
        answer = demo.ask(lambda key: (read(extended_output / key) or b"").decode() or None, query)
        assert json.loads(answer["body"])["items"], query
