"""Patterns of searches, for edges that count requests before a script runs. Pure.

The rule itself is `isSearch` in templates/edge/counting.js.j2.
"""

import re
from typing import Final

from generator.config.settings import Config
from generator.edge import router

#: The parameter's name in its two spellings, and what may follow it.
_NAME: Final = "(?:q|%71)(?:=|&|$)"
#: Matches the query of a search, as sent. Groups capture nothing, as WAF refuses such.
QUERY_OF_SEARCH: Final = f"(?:^|&){_NAME}"


def search_pattern(config: Config) -> str:
    """Matches the method and the target of a search, as sent, with a blank between them."""
    return rf"^(?:GET|HEAD) {re.escape(router.public_paths(config)[0])}[?](?:.*&)?{_NAME}"
