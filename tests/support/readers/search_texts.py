"""Texts in many scripts, for hypothesis: what titles and queries are made of."""

from typing import Final

from hypothesis import strategies as st

#: Characters that fold in ways of their own, or that engines treat in different ways.
ODD: Final = "ÀáßẞﬁǅİıſKÅΣςσѢёԱև℃½²①Ⓐａｶﾞガ々ー選挙報𠮷𝔸𝟗🙂\u0301\u200d\u00ad한하각ᄒاً٣กขก็שׁאꭰᏸﷺ'’-_.$ \t\u3000"
PLAIN: Final = st.sampled_from([
    "will", "Will", "war", "warner", "a", "to", "2026", "no-one's", "Trump", "Élection", "選挙戦", "2026年選挙",
    "한국이",
])  # fmt: skip
WORDS: Final = (
    PLAIN | st.text(st.sampled_from(ODD), max_size=6) | st.text(st.sampled_from("abcAB"), min_size=1, max_size=4)
)
TEXTS: Final = (
    st.lists(PLAIN, min_size=3, max_size=6).map(" ".join)
    | st.lists(WORDS, max_size=6).map(" ".join)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
