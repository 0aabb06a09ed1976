"""Every setting with its type, default and bounds, as frozen models. `loader` reads their values."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import pydantic
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr, WithJsonSchema
from pydantic.fields import FieldInfo

from generator.config import passwords, targets
from generator.config.downloads import Changes, Dumps, Feeds, PublishedHistory
from generator.config.gone import GONE
from generator.config.licensing import License, PublisherSection
from generator.config.market_url import MarketUrl, MarketUrlTemplate, QuestionUrlTemplate
from generator.config.questions import Questions
from generator.config.scalars import (
    LOOPBACK,
    Categories,
    Command,
    Duration,
    File,
    Line,
    Networks,
    Section,
    Share,
    WebUrl,
)

ENVIRONMENT_PREFIX: Final = "PUBLIC_MARKETS_"
DEMO_DATABASE: Final = "sqlite:///demo.db"
#: By `api.keys.MUTABLE`: in a shared cache, fresh and then stale, and after that in a browser, fresh and then stale.
FIRST_PAGE_CACHED: Final = timedelta(seconds=30 + 60 + 10 + 60)

_WINDOW_STEP = timedelta(hours=1)
_SOURCE_SCHEMES = ("sqlite", "postgresql", "postgresql+psycopg", "postgres")
_SCHEDULER = re.compile(r"(tcp|tls)://([\w.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}", re.ASCII)


def variable(key: str) -> str:
    """The environment variable that sets the key."""
    return ENVIRONMENT_PREFIX + key.replace(".", "__").upper()


def _source_url(secret: SecretStr, info: pydantic.ValidationInfo) -> SecretStr:
    url = secret.get_secret_value()
    if info.context == "file" and passwords.found_in(url):
        raise ValueError(f"holds a password, which must not be in the file; set {variable('source.url')} instead")
    if not url.isprintable() or url.partition("://")[0] not in _SOURCE_SCHEMES:
        raise ValueError(f"write a database URL, beginning with {'://, '.join(_SOURCE_SCHEMES)}://")
    if passwords.is_ambiguous(url):
        raise ValueError("has an `@` in user, password, database or options; percent-encode it: write %40 there")
    return secret


def _history_points(count: int) -> int:
    if count == 1:
        raise ValueError("write 0, or at least 2, as the first and the last point are always kept")
    return count


def _lifetime(duration: timedelta) -> timedelta:
    if duration < FIRST_PAGE_CACHED:
        raise ValueError("write at least 160 s: caches keep a first page that long, and its cursor must work")
    return duration


def _window_step(duration: timedelta) -> timedelta:
    if duration < timedelta(0) or (duration and timedelta(days=1) % duration):
        raise ValueError("write 0, or a duration that divides a day, such as 15 min, 1 h or 6 h")
    return duration


def _step_of_null(step: object) -> object:
    """An hour for null, the former default, which configurations and recorded states still have."""
    return _WINDOW_STEP if step is None else step


def _cluster(address: str | None) -> str | None:
    if address is not None and not _SCHEDULER.fullmatch(address):
        raise ValueError("write the address of a Dask scheduler, such as tcp://scheduler:8786 or tls://scheduler:8786")
    return address


HistoryPoints = Annotated[
    int, Field(ge=0, le=10_000, json_schema_extra={"not": {"const": 1}}), AfterValidator(_history_points)
]


class Source(Section):
    """The source database."""

    url: Annotated[SecretStr, AfterValidator(_source_url), WithJsonSchema({"type": "string"})] = Field(
        SecretStr(DEMO_DATABASE),
        description="SQLAlchemy URL, sqlite or postgresql; if it holds a password, set it in the environment.",
        json_schema_extra={"default": DEMO_DATABASE},
    )
    # BaseModel has a method named schema.
    schema_: Line | None = Field(
        None, alias="schema", description="Schema that holds the relations; null: the connection's default."
    )
    audit: Share = Field(
        0.01,
        description="Share of the markets with unchanged versions that are read anyway, to check them.",
    )

    @property
    def is_default(self) -> bool:
        """Whether nobody named a database; `loader` ignores a file that repeats the default."""
        return "url" not in self.model_fields_set


class Snapshot(Section):
    """The groups on the landing page."""

    size: int = Field(6, ge=0, le=100, description="Markets per group.")


class Detail(Section):
    """What a market's detail shows."""

    order_book: bool = Field(
        default=True, description="Whether to publish the public resting orders, summed per price."
    )
    recent_fills: int = Field(50, ge=0, le=1000, description="Maximum number of fills, newest first.")
    history_points: HistoryPoints = Field(
        500, description="Maximum number of points in the history; not 1, as the first and the last are always kept."
    )

    def shows(self) -> dict[str, bool]:
        """Whether it shows rows of each relation that only details show, by the relation's name."""
        return {
            "orders": self.order_book, "fills": self.recent_fills > 0, "probabilities": self.history_points > 0,
        }  # fmt: skip


class Cursor(Section):
    """Paging through a list."""

    lifetime: Annotated[Duration, AfterValidator(_lifetime)] = Field(
        timedelta(hours=6),
        le=timedelta(days=366),
        description="How long a replaced list stays readable for walks in progress.",
    )


class RateLimit(Section):
    """The edge's rate limit per client: an IPv4 address, or a /64 of IPv6."""

    requests: int = Field(300, ge=1, description="Requests per window.")
    searches: int = Field(30, ge=1, description="How many of these may be searches, requests with `q`.")
    window: Duration = Field(timedelta(seconds=60), ge=timedelta(seconds=1), description="Length of the window.")
    trusted_proxies: Networks = Field(
        [], description="Proxies trusted to add the reader's address to X-Forwarded-For: addresses or networks."
    )


class Guards(Section):
    """Safety limits: a run that exceeds one is refused."""

    max_shrink: Share = Field(
        0.2, description="Largest share of markets, fills, points or questions that a run may remove."
    )
    max_invalid: Share = Field(0.01, description="Largest share of the markets that may be quarantined.")
    max_jumps: Share = Field(0.1, description="Largest share of the open markets that may move by more than 30 points.")
    max_monthly_cost: float = Field(100.0, ge=0, description="Largest estimated cost of publishing, in USD per month.")


class Publish(Section):
    """Where and how to publish."""

    target: Annotated[Line, AfterValidator(targets.checked)] | None = Field(
        None, description="s3://bucket/prefix or a directory; null: not set."
    )
    endpoint_url: WebUrl | None = Field(None, description="Endpoint of an S3-compatible store; null: Amazon S3.")
    client: Literal["obstore", "boto3"] = Field(
        "obstore", description="Upload library: obstore, or boto3, which is slower but runs wherever Python does."
    )
    single_writer: bool = Field(
        default=False,
        description="Whether to accept a store without conditional writes; true promises that nobody else publishes.",
    )
    cloudfront_distribution: Line | None = Field(
        None, description="ID of the CloudFront distribution to invalidate after a withdrawal; null: none."
    )
    purge_command: Command | None = Field(
        None, description="Command that purges another CDN after a withdrawal; the address is appended; null: none."
    )
    cdn: Literal["none"] | None = Field(None, description="none: nothing caches in front of the target; null: unknown.")
    notify_command: Command | None = Field(
        None,
        description="Command to run after a publish that changed anything; the newest step and the change feed's "
        "address are appended; null: none.",
    )

    def bucket(self) -> tuple[str, str] | None:
        """The bucket of an `s3://` target, and the prefix of all keys in it: empty, or ending with a slash."""
        return targets.bucket(self.target) if self.target else None

    @property
    def is_unpurged(self) -> bool:
        """Whether the target is a bucket, which caches may lie in front of, and no withdrawal can purge these."""
        return self.bucket() is not None and not (self.cloudfront_distribution or self.purge_command)


class Config(Section):
    """Settings of the public-markets job."""

    base_url: WebUrl = Field("http://127.0.0.1:8000", description="Public address of the API.")
    market_url: MarketUrlTemplate | None = Field(
        None,
        description="Address of a market's page on your site: with {id}, {slug} or {key}, also {question}; null: none.",
    )
    question_url: QuestionUrlTemplate | None = Field(
        None,
        description="Address of a question's page on your site: with {id}, {slug} or {key}; null: none.",
    )
    source: Source = Field(default_factory=Source)
    output: File = Field(Path("output"), description="Output folder of a build.")
    variant: Literal["core", "extended"] = Field("core", description="API variant to publish: core or extended.")
    categories: Categories | None = Field(
        None, description="Categories with lists of their own, by name or slug; null: all. Extended variant only."
    )
    search: Literal["off", "title", "title+description"] = Field(
        "title+description", description="The texts of a market in which `q` finds words. Extended variant only."
    )
    layout: Literal["pages", "chunks"] = Field(
        "pages",
        description="How lists are stored: pages work with every edge, chunks need an edge that can read objects.",
    )
    fills_window_step: Annotated[Duration, AfterValidator(_window_step), BeforeValidator(_step_of_null)] = Field(
        _WINDOW_STEP,
        description="Steps in which fills leave fills24h, which counts up to one step more than 24 hours; 0: none.",
    )
    schedule: int = Field(60, ge=1, description="Minutes between builds, as scheduled in cron; used to estimate costs.")
    snapshot: Snapshot = Field(default_factory=Snapshot)
    detail: Detail = Field(default_factory=Detail)
    cursor: Cursor = Field(default_factory=Cursor)
    rate_limit: RateLimit = Field(default_factory=RateLimit)
    guards: Guards = Field(default_factory=Guards)
    publish: Publish = Field(default_factory=Publish)
    dumps: Dumps = Field(default_factory=Dumps)
    changes: Changes = Field(default_factory=Changes)
    feeds: Feeds = Field(default_factory=Feeds)
    questions: Questions = Field(default_factory=Questions)
    prices_file: bool = Field(
        default=True,
        description="Whether to publish v1/prices.json: id, probability and volume of all open markets, up to 2 MB.",
    )
    license: License | None = Field(None, description="Licence of the data: SPDX identifier or address; null: none.")
    publisher: PublisherSection = Field(default_factory=PublisherSection)
    history: PublishedHistory = Field(default_factory=PublishedHistory)
    cluster: Annotated[Line | None, AfterValidator(_cluster)] = Field(
        None,
        description="Address of a Dask scheduler whose workers read and render, such as tcp://scheduler:8786; null: "
        "this machine does.",
    )
    metrics: File | None = Field(None, description="Prometheus text file with the metrics of the last run; null: none.")

    def conflict(self) -> str | None:
        """Why these settings do not go together, each valid by itself; None if they do."""
        if self.variant == "core":
            for name, template in (("market", self.market_url), ("question", self.question_url)):
                if template is not None and MarketUrl.of(template).placeholder == "slug":
                    needs = f"{name}_url: {{slug}} needs variant: extended, as {name}s have no slugs in core"
                    return f"{needs}; write {{id}} or {{key}}"
        if self.dumps.fills and not self.dumps.parquet:
            return "dumps.fills: needs dumps.parquet, as trades are in Parquet files; write dumps.fills: false"
        given = [key for key in ("cloudfront_distribution", "purge_command") if getattr(self.publish, key)]
        if self.publish.cdn and given:
            return f"publish.cdn: is none, but publish.{given[0]} names a cache to purge; remove one of the two"
        if self.history.public and not (self.has_parquet and self.detail.history_points):
            return "history.public: needs dumps.parquet and detail.history_points, as it is made of the prices there"
        return None

    @property
    def search_texts(self) -> tuple[str, ...]:
        """The texts of a market in which `q` finds words, `title` or `description`; empty without a search index."""
        return () if self.variant == "core" or self.search == "off" else tuple(self.search.split("+"))

    @property
    def can_search(self) -> bool:
        """Whether there is an index for `q`."""
        return bool(self.search_texts)

    @property
    def has_parquet(self) -> bool:
        """Whether dumps have Parquet files."""
        return self.dumps.parquet and self.dumps.ndjson

    @property
    def has_fills(self) -> bool:
        """Whether Parquet has every trade."""
        return self.has_parquet and self.dumps.fills

    @property
    def has_changes(self) -> bool:
        """Whether there is a change feed, whose followers begin with the dump."""
        return self.changes.enabled and self.dumps.ndjson

    @property
    def has_questions(self) -> bool:
        """Whether the API has questions, as far as is known without the database."""
        return bool(self.questions.enabled)

    @property
    def has_question_lists(self) -> bool:
        """Whether the API has lists of questions."""
        return self.has_questions and self.questions.lists

    @property
    def files_url(self) -> str:
        """The address below which files of dumps and change feed are served."""
        return self.dumps.base_url or self.base_url

    @property
    def is_local(self) -> bool:
        """Whether `base_url` is an address of this machine only."""
        return urlsplit(self.base_url).hostname in LOOPBACK


def _fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        if field.exclude:
            continue
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, f"{key}.")
        else:
            yield key, field


#: Every setting by its dotted key; a FieldInfo knows its default and description.
KEYS: Final[Mapping[str, FieldInfo]] = dict(_fields(Config))
#: Keys that only the page about a cluster tells of.
OF_CLUSTER: Final = frozenset({"cluster"})
#: Keys that earlier versions had, the first of which a build remarks on.
FORMER: Final = frozenset({"dumps.histories", *GONE})
#: The keys whose value may be a list.
LISTS: Final = frozenset(
    {"categories", "publish.notify_command", "publish.purge_command", "rate_limit.trusted_proxies"}
)
#: The keys that hold other keys.
SECTIONS: Final = frozenset(key.partition(".")[0] for key in (*KEYS, *FORMER) if "." in key)
