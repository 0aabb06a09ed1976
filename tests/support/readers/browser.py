"""Pages in a real Chromium: console messages, requests to other hosts, and axe's findings."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, Page, Request, Route, sync_playwright

from tests.support.programs import require, unavailable
from tests.support.project import ROOT
from tests.support.waiting import PATIENCE_S

AXE: Final = ROOT / "tests/node/node_modules/axe-core/axe.min.js"
DESKTOP: Final = (1280, 900)
PHONE: Final = (390, 844)


@contextmanager
def chromium() -> Iterator[Browser]:
    program = require("chromium", reason="no page is opened in a browser")
    # Chromium's sandbox does not run as root, as in containers.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page, and what must not occur in it: console messages, requests to other hosts, dialogs."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def violations(self, *ignored: str) -> list[Any]:
        """axe's findings: each rule with the elements that break it."""
        if not AXE.is_file():
            unavailable("axe-core is not installed: nothing checks whether everybody can read the pages")
        # The page's policy forbids new scripts, but not evaluation from outside.
        # Frames are pages of their own, to which axe cannot speak from a file.
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("axe.run(document, {iframes: false})")["violations"]
        return [
            (violation["id"], [node["html"] for node in violation["nodes"]])
            for violation in found
            if violation["id"] not in ignored
        ]

    def overflow(self) -> int:
        """How many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


class Window:
    """A page in which addresses are opened one after the other: a page for each costs more than twice as much.

    Requests to other hosts are blocked.
    """

    def __init__(self, page: Page) -> None:
        self._origin = ""
        self._watched = Watched(page)
        page.context.route("**/*", self._pass_on)
        page.on("console", lambda message: self._complain(message.text))
        page.on("pageerror", lambda error: self._complain(str(error)))
        page.on("dialog", lambda dialog: self._complain(f"dialog: {dialog.message}"))

    def open(self, address: str) -> Watched:
        """Load an address, even if it differs from the last one in its fragment only."""
        page = self._watched.page
        page.goto("about:blank")
        self._origin, self._watched = _origin(address), Watched(page)
        page.goto(address)
        return self._watched

    def _complain(self, text: str) -> None:
        self._watched.complaints.append(text)

    def _pass_on(self, route: Route, request: Request) -> None:
        if request.url.startswith((self._origin, "data:", "blob:")):
            route.continue_()
        else:
            self._watched.foreign.append(request.url)
            route.abort()


@contextmanager
def window(
    browser: Browser,
    *,
    size: tuple[int, int] = DESKTOP,
    scheme: Literal["light", "dark"] = "light",
    scripts: bool = True,
) -> Iterator[Window]:
    """A new window, without the state of any other."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, java_script_enabled=scripts
    )
    context.set_default_timeout(PATIENCE_S * 1_000)
    try:
        yield Window(context.new_page())
    finally:
        context.close()


def _origin(address: str) -> str:
    if address.startswith("file:"):
        return str(Path(address).parent).replace("file:/", "file:///")
    return "/".join(address.split("/")[:3])
