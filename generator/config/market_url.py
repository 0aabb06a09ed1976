"""The settings `market_url` and `question_url`: where pages are on the operator's site, each with a placeholder.

The only place that knows their form, in both directions: from a market or question to the address of its page, and
back. Pure.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, cast
from urllib.parse import quote, unquote, urlsplit

from pydantic import AfterValidator

from generator.config.scalars import LOOPBACK

#: What the placeholder stands for: the id, the slug, or the key on the operator's site of the market or question.
Placeholder: TypeAlias = Literal["id", "slug", "key"]

LONGEST: Final = 500
#: The longest address that is looked at. Of a key of 200 characters, each takes twelve where it is escaped.
LONGEST_ADDRESS: Final = 4_000
_PLACEHOLDER: Final = re.compile(r"\{(id|slug|key)\}")
#: Stands for the id of the question that a market is in.
_QUESTION: Final = "{question}"
#: What may surround the placeholder: the characters of RFC 3986, without those that a URI template cannot have.
_LITERAL: Final = re.compile(r"([A-Za-z0-9._~:/?#\[\]@!$&()*+,;=-]|%[0-9A-Fa-f]{2})*")
_ORIGIN: Final = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(?=[/?#])")
_PORTS: Final = {"http": 80, "https": 443}
_EXAMPLE: Final = "such as https://example.org/markets/{id}"
_EXAMPLE_OF_QUESTION: Final = "such as https://example.org/questions/{question}#{id}"


@dataclass(frozen=True)
class MarketUrl:
    """A template: what is before and after its placeholder; in one of them, the id of a question may stand."""

    before: str
    placeholder: Placeholder
    after: str

    @classmethod
    def of(cls, template: str) -> "MarketUrl":
        """Parse a template; raise ValueError, which does not quote it, if it is none."""
        if len(template) > LONGEST:
            raise ValueError(f"write an address of at most {LONGEST} characters")
        before, name, after = _parts(template)
        if template.count(_QUESTION) > 1:
            raise ValueError(f"write {_QUESTION} once, {_EXAMPLE_OF_QUESTION}")
        origin = _ORIGIN.match(before)
        if origin is None:
            raise ValueError(
                f"write an https:// address without user, with the placeholder behind its host, {_EXAMPLE}"
            )
        literals = (text.replace(_QUESTION, "") for text in (before, after))
        if not all(map(_LITERAL.fullmatch, literals)) or set((before + after)[origin.end() :]) & {"[", "]"}:
            raise ValueError("percent-encode the characters that an address cannot have, such as %20 for a space")
        try:
            url = urlsplit(origin[0])
            is_possible = url.port != 0
        except ValueError:
            is_possible = False
        if not is_possible:
            raise ValueError(f"correct its host or port: write it {_EXAMPLE}")
        if url.scheme != "https" and url.hostname not in LOOPBACK:
            raise ValueError("begin it with https://; http:// is for addresses of this machine only")
        return cls(before, name, after)

    @property
    def needs_question(self) -> bool:
        """Whether the address has the id of the market's question in it."""
        return _QUESTION in self.before or _QUESTION in self.after

    def address(self, value: str, question_id: str = "") -> str:
        """The address with this value, escaped as in RFC 6570: all but letters, digits and `-._~` of ASCII."""
        before, after = (text.replace(_QUESTION, question_id) for text in (self.before, self.after))
        return f"{before}{quote(value, safe='')}{after}"

    def value_in(self, address: str) -> str | None:
        """The value with which an address was made; None for any other address.

        What browsers and links add or change counts for nothing: http or https, the case of the host, a slash at the
        end, more parameters, a fragment, and characters that need no escape.
        """
        found = re.fullmatch(self._pattern(), address) if len(address) <= LONGEST_ADDRESS else None
        try:
            return unquote(found[1], errors="strict") if found else None
        except UnicodeDecodeError:
            return None

    def _pattern(self) -> str:
        url = urlsplit(self.before)
        origin = _ORIGIN.match(self.before)
        start = origin.end() if origin else 0
        host = self.before[: origin.start(2) if origin and origin[2] else start].partition("://")[2]
        port = "(?::(?:80|443))?" if url.port in (None, _PORTS[url.scheme]) else f":{url.port}"
        if "#" in self.before:
            value, more = "[^/?&#]+", "/?(?:[?&#].*)?"
        elif "?" in self.before:
            value, more = "[^&#]+", "(?:[&#].*)?"
        else:
            value, more = "[^/?#]+", "/?(?:[?#].*)?"
        before, after = map(_literally, (self.before[start:], self.after.removesuffix("/")))
        return f"(?i:https?://{re.escape(host)}){port}{before}({value}){after}{more}"


def _literally(text: str) -> str:
    """What matches a part of a template, whichever question it is for."""
    return "[^/?&#]+".join(map(re.escape, text.split(_QUESTION)))


def _parts(template: str) -> tuple[str, Placeholder, str]:
    try:
        before, name, after = _PLACEHOLDER.split(template)
    except ValueError:
        raise ValueError(f"write an address with one of {{id}}, {{slug}} and {{key}} in it, once, {_EXAMPLE}") from None
    return before, cast("Placeholder", name), after


def _checked(template: str) -> str:
    MarketUrl.of(template)
    return template


def _of_question(template: str) -> str:
    if MarketUrl.of(template).needs_question:
        raise ValueError(f"write {{id}} for the id of the question, and leave out {_QUESTION}")
    return template


MarketUrlTemplate = Annotated[str, AfterValidator(_checked)]
QuestionUrlTemplate = Annotated[str, AfterValidator(_of_question)]
