"""A publish to a bucket that is killed at one of its writes, a takedown after it, and the rebuild after that."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pytest

from tests.site import random_sites
from tests.site.random_sites import FIRST, LATER, RandomSite
from tests.site.taken_down import Objects, Workplace, differences, traces, workplace
from tests.support.kills import Kill
from tests.support.sites.builds import lasting
from tests.support.stores.places import use_credentials
from tests.support.stores.s3.bucket import Conditions
from tests.support.stores.s3.server import BUCKET, S3Server

_MANY: Final = 1_000_000
#: When the lease of a publisher that was killed is over.
_LEASE_OVER_S: Final = 600


@dataclass
class Killed:
    """The first state is in the bucket, and the second one in `output/`, which takes `writes` to publish.

    `fresh` is what a build from nothing makes of the second state without the markets that are taken down.
    """

    place: Workplace
    published: S3Server
    fresh: Objects
    writes: int = 0
    _plays: int = 0

    def play(self, writes: int, *, is_lost: bool) -> list[str]:
        """Kill the publish after so many writes, take the markets down, and rebuild; return what is wrong.

        The folder may be lost with the machine: then another has the next one.
        """
        place, site = self.place, self.place.site
        self._plays += 1
        output = f"killed-{self._plays}"
        place.copy("output", output)
        with copy_of(self.published) as server:
            place.settings = settings_of(server)
            self._publish(Kill(writes), server, output)
            server.behaviour.clock_offset_s += _LEASE_OVER_S
            output = f"{output}-next" if is_lost else output
            result = place.run("takedown", *site.ids, output=output)
            if result.exit_code:
                return [f"takedown: {result.stderr.strip().splitlines()[-1]}"]
            # A folder that is lost with its machine is not made again by a takedown.
            after = [*traces(site, stored(server)), *place.traces(output)]
            place.done("rebuild", "--as-of", LATER, "--allow-shrink", "--allow-invalid", output=output)
            place.settings = {}
            store = lasting({key: body for key, body in stored(server).items() if key.startswith("v1/")})
            fresh = lasting(dict(self.fresh))
            again = [f"rebuilt {fault}" for fault in differences(fresh, store)]
            return [*after, *again, *(f"rebuilt {fault}" for fault in traces(site, stored(server)))]

    def count(self) -> None:
        """Count the writes of the publish, without a kill."""
        never = Kill(_MANY)
        self.place.copy("output", "counted")
        with copy_of(self.published) as server:
            self.place.settings = settings_of(server)
            self._publish(never, server, "counted")
        self.writes = _MANY - never.left

    def _publish(self, kill: Kill, server: S3Server, output: str) -> None:
        with kill.over(server):
            result = self.place.run("publish", "--allow-shrink", output=output)
            assert kill.has_struck or not result.exit_code, result.output


@contextmanager
def killed_site(site: RandomSite) -> Iterator[Killed]:
    """The site, its first state published."""
    with workplace(site) as place, S3Server() as server, pytest.MonkeyPatch.context() as patch:
        use_credentials(patch)
        random_sites.fill(place.folder, site.first)
        place.settings = settings_of(server)
        place.done("rebuild", "--as-of", FIRST)
        place.settings = {}
        random_sites.fill(place.folder, site.second)
        place.build(site.as_of)
        place.block("fresh", site.ids)
        place.build(LATER, output="fresh")
        killed = Killed(place, server, place.objects("fresh"))
        killed.count()
        yield killed


def settings_of(server: S3Server) -> dict[str, str]:
    return {"publish.target": f"s3://{BUCKET}/api/", "publish.endpoint_url": server.url}


def stored(server: S3Server) -> dict[str, bytes]:
    """Every object by its key."""
    return {key.removeprefix("api/"): body for key, (body, _) in server.objects().items()}


@contextmanager
def copy_of(server: S3Server) -> Iterator[S3Server]:
    """Another server with the same objects."""
    with S3Server() as copy:
        for key, (body, headers) in server.objects().items():
            copy.bucket.put(key, body, headers, Conditions())
        yield copy
