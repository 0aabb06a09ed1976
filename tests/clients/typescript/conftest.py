"""The address of a site that changes."""

from collections.abc import Iterator

import pytest

from tests.clients.faulting_proxy import Fate, FaultingProxy, running
from tests.clients.typescript.changing_site import BASE_URL, ChangingSite


@pytest.fixture(scope="module")
def url(site: ChangingSite) -> Iterator[str]:
    """The address of the changing site of a module, as its heads name it."""
    fate = Fate((), seed=1, share=0, in_a_row=0)
    with running(FaultingProxy(f"http://127.0.0.1:{site.edge.client.port}", fate, base_url=BASE_URL)) as proxy:
        yield proxy.url
