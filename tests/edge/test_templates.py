"""What is put into a page is escaped; what is not given is an error."""

import jinja2
import pytest

from generator.edge import templates


@pytest.mark.parametrize("name", ["nginx.conf.j2", "router.js.j2", "page.html", None])
def test_what_is_no_page_is_not_escaped(name: str | None) -> None:
    assert not templates.is_page(name)


def test_pages_are_escaped_though_their_last_suffix_is_not_html() -> None:
    assert templates.is_page("inspection/page.html.j2")


def test_a_value_that_is_not_given_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        templates.rendered("inspection/page.html.j2", {})


def test_scripts_are_read_as_they_stand() -> None:
    assert templates.plain("inspection/start.js").startswith("// Shared by all parts of the page")
