"""What is put into a page is escaped; what is not given is an error."""

import jinja2
import pytest

from generator.edge import templates


@pytest.mark.parametrize("name", ["nginx.conf.j2", "router.js.j2", "page.html", None, "inspection/page.html.j2"])
def test_templates_of_pages_are_escaped_and_nothing_else(name: str | None) -> None:
    assert templates.is_page(name) is (name == "inspection/page.html.j2")


def test_a_value_that_is_not_given_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        templates.rendered("inspection/page.html.j2", {})


def test_scripts_are_read_as_they_stand() -> None:
    assert templates.plain("inspection/start.js").startswith("// Shared by all parts of the page")
