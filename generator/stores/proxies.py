"""The proxy through which a store is asked: both libraries take the one that boto3 finds, or none."""

import os
from urllib.parse import urlsplit

from botocore.utils import get_environ_proxies


def proxy_of(url: str) -> str | None:
    """The address of the proxy for a URL; None if it is asked directly."""
    return get_environ_proxies(url).get(urlsplit(url).scheme)


def named(proxy: str) -> str:
    """The environment variable that sets this proxy, for messages: its address may have a password."""
    set_by = (name for name, value in os.environ.items() if value == proxy and name.lower().endswith("_proxy"))
    return next(set_by, "the system's proxy")
