"""JSON Feed 1.1 (jsonfeed.org) as it is published; an Atom feed has the same content."""

from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from generator.api.contract import API_VERSION, Closed, IfPresent
from generator.api.forms import Timestamp, Url
from generator.config.licensing import License
from generator.config.settings import Config

#: The feeds: markets by creation, and by resolution, latest first.
FeedName: TypeAlias = Literal["new", "resolved"]
FEED_NAMES: Final[tuple[FeedName, ...]] = get_args(FeedName)
#: Entries of a feed at most.
MOST_ENTRIES: Final = 50
VERSION: Final = "https://jsonfeed.org/version/1.1"
_URN: Final = "urn:uuid:"

EntryId = Annotated[
    str, StringConstraints(pattern=rf"^{_URN}[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}$")
]


class FeedAuthor(Closed):
    """Who publishes a feed."""

    name: str
    url: Annotated[Url | None, IfPresent] = None


class FeedRights(Closed):
    """Under which licence the data of a feed is published."""

    license: License


class FeedEntry(Closed):
    """A market in a feed: only what seldom changes."""

    model_config = ConfigDict(alias_generator=None)

    id: EntryId
    url: Url
    title: str
    content_text: str
    date_published: Timestamp
    date_modified: Timestamp
    tags: Annotated[list[str], Field(default_factory=list, exclude_if=lambda tags: not tags)]

    @property
    def market_id(self) -> str:
        """The id of the market."""
        return self.id.removeprefix(_URN)


class Feed(Closed):
    """A JSON Feed, latest entries first."""

    model_config = ConfigDict(alias_generator=None)

    version: Literal["https://jsonfeed.org/version/1.1"] = VERSION
    title: str
    home_page_url: Url
    feed_url: Url
    description: str
    authors: list[FeedAuthor]
    rights: Annotated[FeedRights | None, IfPresent] = Field(None, alias="_rights")
    items: Annotated[list[FeedEntry], Field(max_length=MOST_ENTRIES)]

    @classmethod
    def found(cls, body: bytes | None) -> "Feed | None":
        """The feed of these bytes; None if there is none, or they are none that this program can read."""
        try:
            return cls.model_validate_json(body) if body else None
        except ValidationError:
            return None


def entry_id(market_id: str) -> str:
    """The id of a market's entry, the same in every feed."""
    return f"{_URN}{market_id}"


def home_page(config: Config) -> str:
    """The address of the site that a feed is of: that of its index."""
    return f"{config.base_url}/{API_VERSION}/"
