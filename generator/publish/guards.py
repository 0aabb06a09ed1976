"""What `publish` refuses, because it looks like an accident: each with what to do about it, or how to allow it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from generator.api import keys
from generator.config.settings import Config
from generator.cost import estimate, prices
from generator.cost.estimate import Cost
from generator.cost.prices import Place, Prices
from generator.errors import CostError, GuardError
from generator.publish.plan import Plan
from generator.publish.record import Published
from generator.tree import layouts, manifest, shrink
from generator.tree.files import REPORT
from generator.tree.folder import Output
from generator.tree.manifest import Manifest


@dataclass(frozen=True)
class LiftedGuards:
    """The guards the person at the keyboard has lifted for this run."""

    shrink: bool = False
    older: bool = False
    other_site: bool = False
    cost: bool = False


def refuse_unfit(built: Manifest | None, folder: Output, shape: Mapping[str, str]) -> Manifest:
    """Raise GuardError unless the folder holds a whole build, made with the settings of now."""
    if built is None:
        raise GuardError(f"{folder.path('')}: nothing was built there yet; run `public-markets build`")
    if not built.complete:
        raise GuardError(f"{folder.path('')}: torn, a build was killed there; run `public-markets build` again")
    differing = sorted(key for key in built.settings.keys() | shape.keys() if built.settings.get(key) != shape.get(key))
    if differing:
        told = ", ".join(f"{key} was {built.settings.get(key)}, is {shape.get(key)}" for key in differing)
        raise GuardError(f"{folder.path('')}: built with other settings ({told}); run `public-markets build` again")
    return built


def refuse_accidents(
    built: Manifest, published: Published, config: Config, allowed: LiftedGuards, barred: frozenset[str]
) -> None:
    """Raise GuardError for a step backwards, another site's bucket, or the loss of too many markets."""
    before = published.built
    site = before.settings.get("base_url", config.base_url)
    if site != config.base_url and not allowed.other_site:
        raise GuardError(
            f"publish.target holds the site {site}, base_url is {config.base_url}; is it the right bucket? "
            "then use --allow-other-site"
        )
    if built.as_of < before.as_of and not allowed.older:
        raise GuardError(
            f"what was built as of {built.as_of} is older than what is published, {before.as_of}; build again "
            "(is a clock wrong?), or use --allow-older"
        )
    if not allowed.shrink:
        shrink.refuse(before.markets.keys() - barred, built.markets.keys(), config.guards.max_shrink)


def refuse_costly(cost: Cost | None, config: Config, known: Prices, built: frozenset[str]) -> None:
    """Raise CostError when publishing on this schedule costs more a month than the owner wants to pay.

    `built` are the markets that the build shows.
    """
    place = prices.judged(known, config)
    if place is None:
        return
    if cost is None:
        raise CostError(
            f"{config.output / REPORT}: has no estimate of the cost; run `public-markets build` again, "
            "or use --allow-cost",
            built,
        )
    mine = cost.layouts[config.layout]
    usd, limit = estimate.priced(mine, place, config.schedule), config.guards.max_monthly_cost
    if usd > limit:
        raise CostError(
            f"{mine.puts_per_publish:,} PUT requests every {config.schedule} minutes would cost about {usd:,.2f} USD a "
            f"month at {place.name} (prices of {known.as_of}), more than guards.max_monthly_cost ({limit:g}) allows; "
            f"nothing was uploaded. {_cheaper(cost, config, place)}use --allow-cost",
            built,
        )


def _cheaper(cost: Cost, config: Config, place: Place) -> str:
    """What would stay within the limit, as the beginning of a sentence; empty when nothing would."""
    minutes = estimate.cheaper(cost.layouts[config.layout], place, config.schedule, config.guards.max_monthly_cost)
    ways: list[tuple[str, str, int]] = [] if minutes is None else [(f"schedule: {minutes}", config.layout, minutes)]
    others = (name for name in cost.layouts if name != config.layout)
    ways += [(f"layout: {name}", name, config.schedule) for name in others]
    told = [f"{way} ({estimate.priced(cost.layouts[name], place, every):,.2f} USD)" for way, name, every in ways]
    return f"set {' or '.join(told)}, or " if told else ""


def refuse_torn(plan: Plan, built: Manifest, folder: Output) -> None:
    """Raise GuardError unless every file that is about to be uploaded is as it was built."""
    for place in _torn(plan, built, folder):
        raise GuardError(
            f"{folder.path(place)}: missing or altered since it was built; run `public-markets build` again"
        )


def _torn(plan: Plan, built: Manifest, folder: Output) -> Iterator[str]:
    for step in plan.generations:
        one = step.one
        if folder.weight(layouts.object_keys(step.list_name, one)) != (layouts.object_count(one), one.bytes):
            yield keys.generation_prefix(step.list_name, one.generation)
    for upload in plan.uploads:
        body = folder.read(upload.key)
        if body is None or manifest.digest(upload.key, body) != built.objects[upload.key]:
            yield upload.key
