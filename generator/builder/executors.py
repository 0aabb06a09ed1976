"""Renders and stages the parts of one build: in this process, in forked workers, or on a cluster.

The work is the same everywhere. A forked worker stages what it rendered, because it shares the disk; a worker of a
cluster only renders, and this process stages what it returns.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final
from urllib.parse import urlsplit

from generator.builder import notices, part_rendering, remote_result
from generator.builder.part_staging import PartWork, StagedPart
from generator.builder.remote_result import RemotePart
from generator.cluster import engine
from generator.config import networks
from generator.config.settings import Config
from generator.errors import ConfigError, SourceError
from generator.findings import Finding, warning
from generator.markets.quarantine import Quarantine, printable
from generator.progress import Progress
from generator.site import worker_pool
from generator.site.worker_pool import QuitError
from generator.source import address
from generator.source.address import display_url
from generator.source.queries import Chosen, Range
from generator.source.reader import Reader, open_reader
from generator.source.survey import Part, Survey
from generator.time_limit import OverdueError, ended_after
from generator.wording import counted

#: What each value of libpq's sslmode below `require` allows.
_ALLOWED: Final = {
    "disable": "nothing is encrypted: whoever is on the network between reads the password and can change every row",
    "allow": "nothing is encrypted unless the server insists: whoever is on the network between can read everything",
    "prefer": "it is encrypted only if the server offers that, which whoever is on the network between can prevent",
}


def findings(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Warn of connections to other machines without TLS."""
    mode = None
    with suppress(SourceError):  # whoever connects will say what is wrong with the address
        mode = address.sslmode(config, environ)
    if allowed := _ALLOWED.get(mode or ""):
        yield warning(
            f"source.url: {display_url(config)}: sslmode is {mode}, so {allowed}; append "
            "?sslmode=verify-full&sslrootcert=… (see docs/secrets.md)"
        )
    scheduler = urlsplit(config.cluster or "")
    if scheduler.scheme == "tcp" and not networks.is_here(scheduler.hostname):
        yield warning(
            f"cluster: {config.cluster} is without TLS: whoever reaches that scheduler, or the network between, can "
            "run code on it and on the workers, and decides what is published; start it with TLS and write tls://…, "
            "and keep the keys of the store away from `build` (see docs/cluster.md)"
        )


#: The most forked workers. Each has a connection of its own, besides the build's.
WORKERS: Final = 8
#: How long a worker waits for its connection: a pooler would have it wait for the build, which waits for its workers.
_CONNECTED_WITHIN_S: Final = 5
#: Markets per part: enough to be worth a worker and a connection, and no more than a worker should hold in memory.
LEAST: Final = 50
MOST: Final = 2_000
#: Where each part reads whole tables: how many parts there should be at most, and yet at most how many markets in each.
_FEW: Final = 8
_MOST_SCANNED: Final = 20_000
#: The assumed size of a detail, in bytes, until results have arrived.
_DETAIL_BYTES: Final = 8_000


def staged(
    work: PartWork, reader: Reader, progress: Progress, remark: Callable[[Finding], None]
) -> Iterator[StagedPart]:
    """Do all parts, on the cluster if one is set; yield them in the order of completion. Workers may be worth a remark.

    Raises ClusterError, ConfigError, OutputError or SourceError.
    """
    if work.config.cluster:
        return remote(work, reader, progress, work.config.cluster)
    return local(work, reader, progress, remark)


def part_size(markets: int, workers: int) -> int:
    """Markets per part: small enough for eight parts per worker, so that none waits long for the last one."""
    return min(MOST, max(LEAST, -(-markets // (8 * workers))))


def parts_of(survey: Survey, reader: Reader, size: int) -> list[Part]:
    """Parts of about `size` markets, or as few as memory allows where the database reads whole tables for each."""
    # PostgreSQL has no idea how many ids are in a short range: it expects one row of each relation, and then compares
    # all rows of a part with all of its markets. SQLite looks up each market's rows whatever it expects.
    parts = survey.parts(size, by_name=not reader.is_file())
    if len(parts) <= _FEW:
        return parts
    within = parts[1].within
    if reader.looks_up(Range(within.ids[0]) if isinstance(within, Chosen) else within):
        return parts
    return survey.parts(max(size, min(_MOST_SCANNED, -(-len(survey.keys) // _FEW))))


def local(
    work: PartWork, reader: Reader, progress: Progress, remark: Callable[[Finding], None]
) -> Iterator[StagedPart]:
    """Do all parts on this machine, in forked workers if these can see the same instant."""
    workers = min(WORKERS, worker_pool.available())
    parts = parts_of(work.survey, reader, part_size(len(work.survey.keys), workers))
    progress.start(len(parts))
    instant = reader.instant() if len(parts) > 1 else None
    if instant is None:
        return alone(work, parts, reader)
    progress.describe(f"{len(parts)} ranges, {counted(workers, 'worker')}")
    return forked(work, parts, reader, instant, remark)


def remote(work: PartWork, reader: Reader, progress: Progress, address: str) -> Iterator[StagedPart]:
    """Render all parts on a cluster, and stage them in this process."""
    instant = shared_instant(reader)
    with engine.connected(address) as cluster:
        threads = cluster.threads()
        # While the results of all threads wait, as many are being made.
        room = engine.WAITING_BYTES // (2 * threads * _DETAIL_BYTES)
        size = min(part_size(len(work.survey.keys), threads), max(LEAST, room))
        parts = work.survey.parts(size, by_name=True)
        progress.start(len(parts))
        progress.describe(f"{len(parts)} ranges, {counted(threads, 'worker')}")
        tasks = ((part, work.task(part, is_remote=True)) for part in parts)
        calls = (((part, task), RemotePart.of(task, instant)) for part, task in tasks)
        for (part, task), body in cluster.results(calls, size * _DETAIL_BYTES):
            rendered = remote_result.parsed(body, work.slugs(part), task)
            yield work.stage(part, task, rendered, reader.reporting_to)


def shared_instant(reader: Reader) -> str:
    """The token with which workers of a cluster see the same instant.

    Raises ConfigError for SQLite, SourceError if the database cannot export a snapshot.
    """
    if reader.is_file():
        raise ConfigError(
            "cluster needs PostgreSQL: workers on other machines cannot see one instant of an SQLite file; omit "
            "`cluster`, or set source.url to a PostgreSQL database"
        )
    if (instant := reader.instant()) is None:
        raise SourceError(
            "cluster: this database cannot export a snapshot, which workers need to read one instant; omit `cluster`"
        )
    return instant


def alone(work: PartWork, parts: Collection[Part], reader: Reader) -> Iterator[StagedPart]:
    """Do the parts in this process."""
    for part in parts:
        yield _done(work, part, reader)


def _done(work: PartWork, part: Part, reader: Reader) -> StagedPart:
    task = work.task(part)
    return work.stage(part, task, part_rendering.render(task, reader.reporting_to), reader.reporting_to)


def forked(
    work: PartWork, parts: Sequence[Part], reader: Reader, instant: str, remark: Callable[[Finding], None]
) -> Iterator[StagedPart]:
    """Do the parts in forked workers, and those that remain in this process if these get no connections."""
    if work.histories:
        from generator.builder import collector  # noqa: F401, PLC0415 - once, and not in each worker
    worker = _Worker(work, instant)
    remaining = {*parts}
    count = min(WORKERS, worker_pool.available())
    with worker_pool.WorkerPool(worker.done, parts, lambda _: 1, count, worker.close) as pool:
        for staged in pool.results():
            remaining.remove(staged.part)
            yield staged
    if causes := [cause for cause in pool.quits if cause]:
        quit_early = printable(f"{len(causes)} of {pool.count}: {causes[0]}")
        remark(notices.FEW_CONNECTIONS.about("pool", quit_early))
    yield from alone(work, sorted(remaining, key=lambda part: part.first), reader)


class _Worker:
    """Does parts in a forked process, over a connection that it opens for the first one."""

    def __init__(self, work: PartWork, instant: str) -> None:
        self._work = work
        self._instant = instant
        self._reader: Reader | None = None
        self._opened = ExitStack()

    def done(self, part: Part) -> StagedPart:
        """Do a part. Raises QuitError if the database refuses a connection, or its pool has none left."""
        if self._reader is None:
            reader = open_reader(self._work.config, Quarantine(), self._instant)
            try:
                with ended_after(_CONNECTED_WITHIN_S):
                    self._reader = self._opened.enter_context(reader)
            except SourceError as error:
                # Another server behind the same address is not a lack of connections.
                raise QuitError(str(error).partition("; ")[0] if error.may_pass else "") from error
            except OverdueError as error:
                raise QuitError(f"no answer within {_CONNECTED_WITHIN_S} seconds") from error
        return _done(self._work, part, self._reader)

    def close(self) -> None:
        """Close the connection."""
        self._opened.close()
