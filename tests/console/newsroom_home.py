"""A real run of the demo's newsroom with its service, and a browser that is signed in.

The run is started once for all tests of a process: Spark takes a while. Tests create things under
names of their own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

import headgate as hg
from headgate.api.headgate import Headgate
from headgate.catalog.principals import Scope

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE_S = 300.0
FEEDS, ITEMS_MIN = ("WayToWork", "NewAlbums", "AcmeNews", "RockConcertStream", "MuseNews"), 3
PATIENCE_MS = 60_000
AXE = Path(__file__).parents[2] / "console" / "node_modules" / "axe-core" / "axe.min.js"


class NewsroomHome:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output: list[str] = []
        command = [sys.executable, "-m", "headgate", "demo", "--folder", str(folder)]
        command += ["--serve", "127.0.0.1:0", "--for", "2 hours"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._is_told = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._is_told.wait(PATIENCE_S) or not self.link:
            raise AssertionError("the demo has not started:\n" + "".join(self.output[-50:]))
        self._wait_for_items()

    def _wait_for_items(self) -> None:
        """Until the feeds that tests look at have some."""
        with self.open() as h:
            token = h.catalog.issue_token([Scope.READ]).text
        headers, until = {"authorization": f"Bearer {token}"}, time.monotonic() + PATIENCE_S
        with httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S) as client:
            waiting = set(FEEDS)
            while waiting:
                assert time.monotonic() < until, "".join(self.output[-50:])
                time.sleep(0.5)
                answers = {each: client.get(f"/v1/feeds/{each}/items") for each in waiting}
                waiting = {
                    name
                    for name, each in answers.items()
                    if not each.is_success or len(each.json()["items"]) < ITEMS_MIN
                }

    link = ""
    """It signs in once."""

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.output.append(line)
            if found := re.search(r"the console: (\S+)", line):
                self.link = found[1]
                self._is_told.set()
        self._is_told.set()

    @property
    def url(self) -> str:
        return self.link.partition("/enter/")[0]

    @property
    def catalog_url(self) -> str:
        return str(self.folder / "catalog.db")

    def open(self) -> Headgate:
        return hg.open(self.catalog_url, folder=self.folder / "data")

    def sign_in_link(self, account: str = "owner") -> str:
        with self.open() as h:
            return f"{self.url}/enter/{h.catalog.accounts.make_link(account)}"

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._reader.join(PATIENCE_S)
            if self._process.stdout is not None:
                self._process.stdout.close()


@contextmanager
def serving(home: NewsroomHome, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """One more service over the same run, which may be killed."""
    command = [sys.executable, "-m", "headgate", "serve", f"--address=127.0.0.1:{port}"]
    command += ["--catalog", home.catalog_url, "--folder", str(home.folder / "data")]
    process = subprocess.Popen(
        [*command, "--allow", "loopback"], stdout=subprocess.PIPE, stderr=None, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.split()[-1].replace("127.0.0.1", "localhost")
        assert httpx.get(f"{url}/livez", timeout=PATIENCE_S).is_success
        yield url, process
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()


class WatchedPage:
    """A page that is signed in; what its console says is kept, as violations of the page's policy
    are said there."""

    def __init__(self, browser: Browser, link: str, **options: object) -> None:
        self.context: BrowserContext = browser.new_context(**options)  # type: ignore[arg-type]
        self.context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(link)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/river")

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.said.append(message.text)

    def violations(self) -> list[str]:
        """Of WCAG 2.2 AA, as far as a program can tell."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate(
            """() => axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]})
                .then(result => result.violations.map(each => each.id + ": "
                    + each.nodes.map(node => node.html.slice(0, 200)).join(" | ")))"""
        )
        return list(found)
