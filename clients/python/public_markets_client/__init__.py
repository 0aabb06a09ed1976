"""A client of the read API of Public Markets sites: `Client` and, for asyncio, `AsyncClient`."""

__version__ = "0.1.0"

from public_markets_client.changes import Change as Change
from public_markets_client.changes import Position as Position
from public_markets_client.clients import AsyncClient as AsyncClient
from public_markets_client.clients import Client as Client
from public_markets_client.errors import *  # noqa: F403 - all of them
from public_markets_client.models import *  # noqa: F403
from public_markets_client.requester import Options as Options
from public_markets_client.stores import *  # noqa: F403
