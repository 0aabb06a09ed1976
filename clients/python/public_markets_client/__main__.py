"""`python -m public_markets_client` is `pm`."""

from public_markets_client.command import run

run()
