"""Sites that change their layout: what is left in the end. tests/publish/explorer walks them."""

import pytest

from generator.api import keys
from tests.support.sites.publishing import PublishedSite, hour

pytestmark = pytest.mark.usefixtures("one_processor")


def test_after_a_move_nothing_is_left_of_the_old_layout_in_the_end(published_site: PublishedSite) -> None:
    def of_chunks() -> set[str]:
        of_lists = [key for key in published_site.objects() if key.startswith(f"{keys.LISTS}/")]
        return {key.rpartition("/")[2] for key in of_lists if key.endswith((keys.INDEX, keys.HEAD))} | {
            keys.CHUNKS for key in of_lists if f"/{keys.CHUNKS}/" in key
        }

    published_site.done("rebuild", "--as-of", hour(1), layout="chunks")
    assert of_chunks() == {keys.INDEX, keys.HEAD, keys.CHUNKS}
    published_site.done("rebuild", "--as-of", hour(2))
    assert of_chunks() == {keys.INDEX, keys.CHUNKS}, "for walks that have begun"
    published_site.done("rebuild", "--as-of", hour(9))
    assert of_chunks() == set()
    assert not [*(published_site.folder / "output").rglob(keys.CHUNKS)]
    published_site.check()
