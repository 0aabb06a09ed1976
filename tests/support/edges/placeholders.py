"""What placeholders in the table of requests stand for: what only a build can tell.

<<generation LIST>>             the name of the list's current generation
<<mint LIST [GENERATION] POSITION>>   a cursor as `cursor.mint` would make it; GENERATION may be `@LIST`
<<encoded …>> <<upper …>> <<forged …>> <<cut …>> <<headless …>>   the same cursor, disguised or damaged
<<market>> <<MARKET>> <<Market>> <<market2>>   a market's id in three spellings, and its first two letters
<<search LIST WORDS PLACE [GENERATION]>>   a cursor of a search: folded words joined by `+`, a place in `all/<sort>`
<<slug>> <<SLUG>>               the slug of a market in two spellings
<<by-slug SLUG>> <<by-slug>>    the key of the market with this slug; with the one above
<<question>> <<QUESTION>> <<question2>> <<question-slug>> <<QUESTION-SLUG>>   the same of the question of questions.py
<<by-question-slug SLUG>> <<by-question-slug>> <<by-question-slug-of-market>>   keys of questions with such a slug
<<repeat COUNT TEXT>>           the text so many times
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

from generator.api import contract, cursors, keys
from generator.api.contract import Variant
from generator.tree import chunks
from generator.verify import request_table
from tests.support.readers import expected_searches, lists

#: The question of every site that questions.py makes.
QUESTION: Final = "0d9a7c44-5e1f-4b6a-8c2d-3f7e9b1a6c50"
QUESTION_SLUG: Final = "who-wins"


class Build:
    """Knows what the placeholders stand for."""

    def __init__(self, output: Path, *, can_search: bool) -> None:
        manifest = json.loads((output / "manifest.json").read_text("utf-8"))
        self._variant = manifest["variant"]
        self.is_chunked = manifest["layout"] == chunks.LAYOUT
        self._output = output
        current = manifest["current"]
        self.has_questions = any(name.startswith(keys.OF_QUESTIONS) for name in current)
        self.can_search = can_search and keys.SEARCH in current
        self._generations = {name: one["generation"] for name, one in current.items()}
        # An id with letters, so that its spellings differ.
        self._market = next(one for one in sorted(manifest["markets"]) if one != one.upper())
        # A slug with letters, for the same reason; the core has none.
        slug = next((one for (one,) in manifest["slugs"].values() if one != one.upper()), "")
        self._meanings = self._all(slug)

    def _all(self, slug: str) -> Mapping[str, Callable[..., str]]:
        """What each placeholder stands for, by its name."""
        return {
            "generation": self._generations.__getitem__,
            "mint": self._mint,
            "encoded": lambda *words: "".join(f"%{ord(letter):02x}" for letter in self._mint(*words)),
            "upper": lambda *words: self._mint(*words).upper(),
            "search": self._search,
            "forged": lambda *words: "0" * cursors.CHECK_LENGTH + self._mint(*words)[cursors.CHECK_LENGTH :],
            "cut": lambda *words: self._mint(*words)[:-1],
            "headless": lambda *words: self._mint(*words)[1:],
            **request_table.market_meanings(self._market),
            "market2": lambda: self._market[:2],
            "slug": lambda: slug,
            "SLUG": slug.upper,
            "by-slug": lambda given=slug: keys.detail_by_slug(given),
            "question": lambda: QUESTION,
            "QUESTION": QUESTION.upper,
            "question2": lambda: QUESTION[:2],
            "question-slug": lambda: QUESTION_SLUG,
            "QUESTION-SLUG": QUESTION_SLUG.upper,
            "by-question-slug": lambda given=QUESTION_SLUG: keys.question_by_slug(given),
            "by-question-slug-of-market": lambda: keys.question_by_slug(slug),
        }

    @property
    def variant(self) -> Variant:
        """The variant that was built."""
        found: Variant = self._variant
        return found

    def fill(self, text: str) -> str:
        """The text, its placeholders replaced."""
        return request_table.fill(text, self._meanings)

    def page(self, key: str, query: str) -> bytes:
        """The page where pages are cut: as many items as requested, unless the list ends."""
        name, parts = str(keys.list_of(key)), key.removesuffix(".json").split("/")
        generation = self._generations[name]
        limit = int(parse_qs(query).get("limit", [str(contract.LIMIT_DEFAULT)])[0])
        position = 0 if keys.is_first_page(key) else int(parts[-1])
        return lists.page(lists.source(self._output, name), generation, position, limit)

    def search_page(self, name: str, query: str) -> bytes:
        """The page of a search, by the naive one."""
        given = {one: values[0] for one, values in parse_qs(query).items()}
        position = int(given["cursor"][cursors.CHECK_LENGTH + cursors.GENERATION_LENGTH :]) if "cursor" in given else 0
        limit = int(given.get("limit", contract.LIMIT_DEFAULT))
        return expected_searches.page(self._output, self._generations[keys.SEARCH], name, given["q"], position, limit)

    def search_root(self, query: str) -> str:
        """The key of the object that is read first."""
        cursor = parse_qs(query).get("cursor", [""])[0]
        generation = cursor[cursors.CHECK_LENGTH :][: cursors.GENERATION_LENGTH]
        return keys.index(keys.SEARCH, generation) if generation else keys.head(keys.SEARCH)

    def _search(self, name: str, words: str, position: str, generation: str = "") -> str:
        found = generation or self._generations.get(keys.SEARCH, f"s{'0' * 19}")
        return expected_searches.cursor(name, words.replace("+", " "), found, int(position))

    def _mint(self, name: str, *place: str) -> str:
        position = place[-1]
        generation = place[0] if len(place) > 1 else f"@{name}"
        if generation.startswith("@"):
            generation = self._generations[generation[1:]]
        # A position that is no number is minted as it stands: its check is right, so only its form can be refused.
        return cursors.check(name, generation, position) + generation + position  # type: ignore[arg-type]
