"""Newsboat reads our feeds by the Google Reader API: what one side marks, the other one sees.

It is Debian's Newsboat 2.21 with `urls-source "feedhq"`. Without a terminal it can reload and
count; to mark something it gets a terminal of its own and keys.
"""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.service.reader_home import API, STATE, ReaderHome
from tests.service.test_api import PATIENCE_S

NEWSBOAT = shutil.which("newsboat")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(NEWSBOAT is None, reason="newsboat is not installed (Debian: newsboat)"),
]
CONFIG = """
urls-source "feedhq"
feedhq-url "{url}"
feedhq-login "{login}"
feedhq-password "{password}"
feedhq-flag-star "s"
confirm-exit no
auto-reload no
feedhq-show-special-feeds no
"""


class Newsboat:
    """Newsboat with a folder of its own."""

    def __init__(self, home: ReaderHome, folder: Path, login: str = "ada") -> None:
        self.folder = folder
        folder.mkdir()
        account = login.partition("/")[0]
        config = CONFIG.format(url=home.url, login=login, password=home.passwords[account])
        (folder / "config").write_text(config)
        (folder / "urls").touch()
        assert NEWSBOAT is not None
        self.command = [
            *(NEWSBOAT, "-C", str(folder / "config"), "-u", str(folder / "urls")),
            *("-c", str(folder / "cache.db")),
        ]
        self.environment = {
            **{name: os.environ[name] for name in ("PATH",) if name in os.environ},
            **{"HOME": str(folder), "TERM": "xterm", "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1"},
        }

    def execute(self, *commands: str) -> str:
        done = subprocess.run(
            [*self.command, "-x", *commands],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def unread(self) -> int:
        """After a reload."""
        self.execute("reload")
        return int(self.execute("print-unread").split()[0])

    def press(self, *steps: tuple[str, Callable[[], bool] | bytes]) -> None:
        """Press keys in a terminal, each with what they have to bring about: a state on our side,
        or a text on the screen."""
        main, terminal = pty.openpty()
        process = subprocess.Popen(
            self.command,
            env={**self.environment, "LINES": "24", "COLUMNS": "80"},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        shown = bytearray()

        def until(is_so: Callable[[], bool]) -> None:
            deadline = time.monotonic() + PATIENCE_S
            while not is_so():
                assert time.monotonic() < deadline, bytes(shown)[-3_000:]
                assert process.poll() is None, bytes(shown)[-3_000:]
                if select.select([main], [], [], 0.1)[0]:
                    with suppress(OSError):
                        shown.extend(os.read(main, 65_536))

        try:
            until(partial(shown.__contains__, b"Quit"))
            for keys, is_done in steps:
                shown.clear()
                os.write(main, keys.encode())
                until(
                    partial(shown.__contains__, is_done) if isinstance(is_done, bytes) else is_done
                )
        finally:
            process.kill()
            process.wait(PATIENCE_S)
            os.close(main)


@pytest.fixture
def newsboat(readers: ReaderHome, tmp_path: Path) -> Newsboat:
    return Newsboat(readers, tmp_path / "newsboat")


def unread_of(reader: httpx.Client, stream: str) -> int:
    params = {"s": stream, "xt": f"{STATE}read", "n": "1000"}
    return len(reader.get(f"{API}/stream/items/ids", params=params).json()["itemRefs"])


def streams(reader: httpx.Client) -> dict[str, str]:
    found = reader.get(f"{API}/subscription/list").json()["subscriptions"]
    return {each["title"]: each["id"] for each in found}


def follow_only(reader: httpx.Client, *titles: str) -> None:
    for title, stream in streams(reader).items():
        if title not in titles:
            form = {"ac": "unsubscribe", "s": stream}
            assert reader.post(f"{API}/subscription/edit", data=form).text == "OK"


def test_newsboat_reads_what_we_have_and_what_we_mark(
    readers: ReaderHome, newsboat: Newsboat
) -> None:
    for n in range(5):
        readers.put("acme", f"rock {n}", "Rock")
    with readers.reader() as reader:
        follow_only(reader, "Rock", "Muse")
        assert newsboat.unread() == 5
        readers.put("acme", "rock 5", "Rock")
        assert newsboat.unread() == 6
        rock = streams(reader)["Rock"]
        page = reader.get(f"{API}/stream/items/ids", params={"s": rock, "n": 2}).json()
        for each in page["itemRefs"]:
            form = {"i": each["id"], "a": f"{STATE}read"}
            assert reader.post(f"{API}/edit-tag", data=form).text == "OK"
        assert newsboat.unread() == 4, "what was read elsewhere is read here"
        form = {"i": page["itemRefs"][0]["id"], "a": f"{STATE}kept-unread"}
        assert reader.post(f"{API}/edit-tag", data=form).text == "OK"
        assert newsboat.unread() == 5
        assert reader.post(f"{API}/mark-all-as-read", data={"s": rock}).text == "OK"
        assert newsboat.unread() == 0


def test_newsboat_marks_a_feed_as_read(readers: ReaderHome, newsboat: Newsboat) -> None:
    for n in range(3):
        readers.put("acme", f"rock {n}", "Rock")
    with readers.reader() as reader:
        follow_only(reader, "Rock")
        rock = streams(reader)["Rock"]
        assert newsboat.unread() == 3
        newsboat.press(("A", lambda: unread_of(reader, rock) == 0))
        readers.put("acme", "rock 3", "Rock")
        assert unread_of(reader, rock) == 1, "it has come since"


def test_newsboat_marks_single_articles_and_stars(readers: ReaderHome, newsboat: Newsboat) -> None:
    for n in range(3):
        readers.put("acme", f"rock {n}", "Rock")
    with readers.reader() as reader:
        follow_only(reader, "Rock")
        rock = streams(reader)["Rock"]
        assert newsboat.unread() == 3

        def starred() -> int:
            params = {"s": f"{STATE}starred"}
            return len(reader.get(f"{API}/stream/items/ids", params=params).json()["itemRefs"])

        newsboat.press(
            ("\r", b"rock 0"),
            ("N", lambda: unread_of(reader, rock) == 2),
            ("N", lambda: unread_of(reader, rock) == 1),
            ("\x05", b"Flags"),
            ("s\r", lambda: starred() == 1),
            ("\x05", b": s"),
            ("\x7f\r", lambda: starred() == 0),
        )
        assert newsboat.unread() == 1


def test_newsboat_of_another_tenant_sees_nothing(readers: ReaderHome, tmp_path: Path) -> None:
    readers.put("acme", "rock 1", "Rock")
    with readers.reader("bob") as reader:
        follow_only(reader, "Rock")
    other = Newsboat(readers, tmp_path / "other", "bob/globex")
    assert other.unread() == 0


def test_a_wrong_password_is_refused(readers: ReaderHome, tmp_path: Path) -> None:
    readers.passwords["ada"] = "wrong"
    client = Newsboat(readers, tmp_path / "wrong")
    done = subprocess.run(
        [*client.command, "-x", "reload"],
        env=client.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "Authentication failed" in done.stdout + done.stderr
