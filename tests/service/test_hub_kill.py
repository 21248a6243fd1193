"""`headgate serve` is killed after a callback was sent a document, and before that is noted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.service.hub_subscriber import PATIENCE_S, Sent, subscriber, wait_until
from tests.service.test_hub import PUBLIC, SCRIPT, HubHome

from headgate.language.parse import parse_script

pytestmark = pytest.mark.integration


@contextmanager
def service(home: HubHome, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "headgate", "serve", "--address", "127.0.0.1:0"]
    command += ["--catalog", str(folder / "headgate.db"), "--folder", str(home.folder)]
    command += ["--public-url", PUBLIC, "--allow", "loopback"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        home.url = process.stdout.readline().removeprefix("serving at ").strip()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


def test_nothing_is_lost_if_the_service_is_killed_before_the_cursor_moves(tmp_path: Path) -> None:
    home = HubHome(tmp_path)
    principal = home.catalog.principal_of_token(home.token("acme"))
    assert principal is not None
    home.catalog.acting_as(principal).apply(parse_script(SCRIPT))
    with subscriber() as reader:
        with service(home, tmp_path) as process:
            home.subscribe(reader, home.link()["atom"], secret="s")

            def kill(_: Sent) -> int:
                os.kill(process.pid, signal.SIGKILL)
                return 204

            reader.answer = kill
            home.publish("a")
            reader.wait(lambda: bool(reader.sent))
            process.wait(PATIENCE_S)
        assert home.catalog.hub.active()[0].position == 0, "it was not noted"
        reader.answer = lambda _: 204
        home.publish("b")
        with service(home, tmp_path):
            reader.wait(lambda: len(reader.sent) >= 2, "what was not noted is sent again")
            reader.wait(lambda: reader.titles() == {"title a", "title b"})
            wait_until(lambda: home.catalog.hub.active()[0].position == 2, "it is noted")
        assert set(reader.sent[-1].titles) == {"title a", "title b"}
        # A service that ends in peace gives the lease back, and the next one begins at once.
        assert home.catalog.hub.take_lease("another", 1.0)
    home.catalog.close()
