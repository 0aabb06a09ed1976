"""Whether a build reaches the database and the cluster so that nobody on the way can read or change anything."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from generator.config import networks
from generator.config.settings import Config
from generator.errors import SourceError
from generator.findings import Finding, warning
from generator.source import address
from generator.source.address import display_url

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
    if (scheduler := config.cluster) and _is_plain(scheduler):
        yield warning(
            f"cluster: {scheduler} is without TLS: whoever reaches that scheduler, or the network between, can run "
            "code on it and on the workers, and decides what is published; start it with TLS and write tls://…, and "
            "keep the keys of the store away from `build` (see docs/cluster.md)"
        )


def _is_plain(scheduler: str) -> bool:
    """Whether the cluster is on another machine, and reached without TLS."""
    url = urlsplit(scheduler)
    return url.scheme == "tcp" and not networks.is_here(url.hostname)
