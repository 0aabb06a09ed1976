"""Pages in a real Chromium: console messages, requests to other hosts, and axe's findings."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, Page, Request, Route, sync_playwright

from tests.support.builds import ROOT
from tests.support.programs import require, unavailable

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
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("axe.run()")["violations"]
        return [
            (violation["id"], [node["html"] for node in violation["nodes"]])
            for violation in found
            if violation["id"] not in ignored
        ]

    def overflow(self) -> int:
        """How many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@contextmanager
def opened(
    browser: Browser,
    address: str,
    *,
    size: tuple[int, int] = DESKTOP,
    scheme: Literal["light", "dark"] = "light",
    scripts: bool = True,
) -> Iterator[Watched]:
    """Open a page; requests to other hosts are blocked."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, java_script_enabled=scripts
    )
    context.set_default_timeout(10_000)
    watched = Watched(context.new_page())

    def pass_on(route: Route, request: Request) -> None:
        if request.url.startswith((_origin(address), "data:", "blob:")):
            route.continue_()
        else:
            watched.foreign.append(request.url)
            route.abort()

    context.route("**/*", pass_on)
    watched.page.on("console", lambda message: watched.complaints.append(message.text))
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.on("dialog", lambda dialog: watched.complaints.append(f"dialog: {dialog.message}"))
    try:
        watched.page.goto(address)
        yield watched
    finally:
        context.close()


def _origin(address: str) -> str:
    if address.startswith("file:"):
        return str(Path(address).parent).replace("file:/", "file:///")
    return "/".join(address.split("/")[:3])
