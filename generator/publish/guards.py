"""What `publish` refuses because it looks like an accident; each message says what to do, or how to allow it."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Self

from generator.api import keys
from generator.config import demo
from generator.config.gone import GONE
from generator.config.settings import Config
from generator.config.shape import QUESTIONS, SOURCE, shaping
from generator.cost import estimate, prices
from generator.cost.estimate import Cost
from generator.cost.prices import Place, PriceList
from generator.errors import CostError, GuardError, OtherSiteError, UnfitFilesError
from generator.findings import CLOCK_TOLERANCE
from generator.publish.plan import Plan
from generator.publish.record import Published
from generator.tree import generations, manifest, shrink
from generator.tree.files import REPORT
from generator.tree.folder import Output
from generator.tree.manifest import Manifest
from generator.wording import counted


@dataclass(frozen=True)
class LiftedGuards:
    """The guards that the operator lifted for this run with `--accept`."""

    shrink: bool = False
    older: bool = False
    other_site: bool = False
    cost: bool = False
    demo: bool = False

    @classmethod
    def of(cls, accepted: AbstractSet[str]) -> Self:
        """Those that options name."""
        return cls(**{one.name: one.name.replace("_", "-") in accepted for one in fields(cls)})


@dataclass(frozen=True)
class Options:
    """What the operator asks: guards to lift, an audit of the store, to delete every retired generation now."""

    lifted: LiftedGuards = field(default_factory=LiftedGuards)
    is_verifying: bool = False
    purges_retired: bool = False
    #: Readers see nothing of it, so no CDN is invalidated and no follower told.
    is_dry: bool = False


def require_fit(folder: Output, shape: Mapping[str, Any]) -> Manifest:
    """The folder's manifest; raise GuardError unless it is of a complete build made with the settings of now.

    Another version recorded the settings that it knew: it built as if all others were at their defaults.
    """
    built = folder.manifest()
    if built is None:
        raise GuardError(f"{folder.path('')}: holds no build yet; run `public-markets build`")
    if not built.complete or built.is_first:
        raise GuardError(f"{folder.path('')}: the last build there was killed; run `public-markets build` again")
    before = {**shaping(Config()), QUESTIONS: False, **built.settings}
    shape = {QUESTIONS: before[QUESTIONS], **shape}
    known = (before.keys() | shape.keys()) - GONE.keys()
    differing = sorted(key for key in known if before.get(key) != shape.get(key))
    if differing:
        changes = ", ".join(_change(key, before.get(key), shape.get(key)) for key in differing)
        raise GuardError(f"{folder.path('')}: built with other settings ({changes}); run `public-markets build` again")
    return built


def _change(key: str, before: object, now: object) -> str:
    return "from another database" if key == SOURCE else f"{key} was {before}, is {now}"


def refuse_demo(built: Manifest, config: Config, lifted: LiftedGuards) -> None:
    """Raise GuardError if the markets of the build are made up, unless the operator accepts that."""
    if not lifted.demo:
        demo.refuse(config, is_marked=built.is_demo)


def refuse_accidents(
    built: Manifest, published: Published, config: Config, lifted: LiftedGuards, blocked: frozenset[str]
) -> None:
    """Raise GuardError for an older build, or the loss of too many markets, than a publish that ended has."""
    before = published.built
    if before.is_first:
        return
    if not lifted.older:
        _refuse_older(built, before)
    if not lifted.shrink:
        unknown = max(0, before.market_count - len(before.ids()))  # of a record that is damaged
        shrink.refuse(before.ids() - blocked, built.ids(), config.guards.max_shrink, unknown)
        shrink.refuse_fewer(before, built, config.guards.max_shrink, blocked)


def is_other_site(before: Manifest, config: Config) -> bool:
    """Whether what is published belongs to the site of another base_url."""
    return bool(before.settings.get("base_url", config.base_url) != config.base_url)


def refuse_other_site(published: Published | None, config: Config, lifted: LiftedGuards) -> None:
    """Raise OtherSiteError if the store holds the site of another base_url, unless the operator accepts that."""
    before = published.built if published else None
    if before and not lifted.other_site and is_other_site(before, config):
        raise OtherSiteError(
            f"publish.target holds the site {before.settings['base_url']}, but base_url is {config.base_url}; if it is "
            "the right target, pass --accept other-site"
        )


def _refuse_older(built: Manifest, before: Manifest) -> None:
    if built.as_of < before.as_of:
        raise GuardError(
            f"the build is as of {built.as_of}, older than what is published, {before.as_of}; build again (check the "
            "clocks), or pass --accept older"
        )


def ahead(built: Manifest, now: str) -> Iterator[str]:
    """A warning if the build is of a time that the store's clock has not reached, which `now` is."""
    if manifest.minutes_between(now, built.as_of) > CLOCK_TOLERANCE / timedelta(minutes=1):
        yield (
            f"the build is as of {built.as_of}, which is ahead of the store's clock ({now}); until then, builds of the "
            "real time are refused as older, unless one is published with --accept older"
        )


def refuse_costly(cost: Cost | None, config: Config, known: PriceList, built: frozenset[str]) -> None:
    """Raise CostError if publishing on this schedule costs more per month than guards.max_monthly_cost.

    `built` are the markets of the build, for the error.
    """
    place = prices.judged(known, config)
    if place is None:
        return
    if cost is None:
        raise CostError(
            f"{config.output / REPORT}: has no cost estimate; run `public-markets build` again, or pass --accept cost",
            built,
        )
    mine = cost.layouts[config.layout]
    usd, limit = estimate.priced(mine, place, config.schedule), config.guards.max_monthly_cost
    if usd > limit:
        raise CostError(
            f"{counted(mine.puts_per_publish, 'PUT request', ',')} every "
            f"{counted(config.schedule, 'minute')} would cost about {usd:,.2f} USD a "
            f"month at {place.name} (prices of {known.as_of}), more than guards.max_monthly_cost ({limit:g}) allows; "
            f"nothing was uploaded. {_cheaper(cost, config, place)}pass --accept cost",
            built,
        )


def _cheaper(cost: Cost, config: Config, place: Place) -> str:
    """The settings that would stay within the limit, to begin a sentence with; empty if there are none."""
    limit = config.guards.max_monthly_cost
    minutes = estimate.cheaper(cost.layouts[config.layout], place, config.schedule, limit)
    ways: list[tuple[str, str, int]] = [] if minutes is None else [(f"schedule: {minutes}", config.layout, minutes)]
    ways += [(f"layout: {name}", name, config.schedule) for name in cost.layouts if name != config.layout]
    priced = [(way, estimate.priced(cost.layouts[name], place, every)) for way, name, every in ways]
    options = [f"{way} ({usd:,.2f} USD)" for way, usd in priced if usd <= limit]
    return f"set {' or '.join(options)}, or " if options else ""


def refuse_altered(plan: Plan, built: Manifest, folder: Output) -> None:
    """Raise UnfitFilesError unless every file about to be uploaded is as it was built.

    Of generations, only the number of files and their bytes are compared here: an upload checks each.
    """
    for place in _altered(plan, built, folder):
        raise UnfitFilesError(str(folder.path(place)))


def _altered(plan: Plan, built: Manifest, folder: Output) -> Iterator[str]:
    for step in plan.generations:
        expected = generations.object_count(step.list_name, step.entry), step.entry.bytes
        if folder.weight(generations.object_keys(step.list_name, step.entry)) != expected:
            yield keys.generation_prefix(step.list_name, step.entry.generation)
    for upload in plan.uploads:
        body = folder.read(upload.key)
        if body is None or manifest.digest(upload.key, body) != built.objects[upload.key]:
            yield upload.key
