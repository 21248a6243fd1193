"""A real S3 server on loopback, for tests and benchmarks: Versity's gateway over a folder.

What is written is on disk, so it may be killed and started again. It is not part of the project:
`scripts/get_s3_server` builds it into the cache.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

VERSION = "1.8.0"
MISSING = "there is no S3 server here: scripts/get_s3_server builds one"
BUCKET = "headgate"
_KEYS = ("test-key", "test-secret-that-is-never-printed")


def find_server() -> Path | None:
    cache = os.environ.get("XDG_CACHE_HOME")
    built = (Path(cache) if cache else Path.home() / ".cache") / "headgate" / f"versitygw-{VERSION}"
    if built.exists():
        return built
    found = shutil.which("versitygw")
    return None if found is None else Path(found)


class S3Server:
    """`with S3Server(folder) as server`. The environment of a client is `server.environment`."""

    def __init__(self, folder: Path) -> None:
        program = find_server()
        assert program is not None, MISSING
        self._program, self._folder = program, folder
        (folder / "buckets" / BUCKET).mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None
        self.environment = {
            "AWS_ACCESS_KEY_ID": _KEYS[0],
            "AWS_SECRET_ACCESS_KEY": _KEYS[1],
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        command = [self._program, "--port", f"127.0.0.1:{self._port}", "--quiet"]
        command += ["posix", self._folder / "buckets"]
        # Keys by the environment: others can see a command line.
        keys = {"ROOT_ACCESS_KEY_ID": _KEYS[0], "ROOT_SECRET_ACCESS_KEY": _KEYS[1]}
        with (self._folder / "server.log").open("ab") as output:
            self._process = subprocess.Popen(
                command, env={**os.environ, **keys}, stdout=output, stderr=output
            )
        self._await()

    def kill(self) -> None:
        """At once, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _await(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert self._process is not None
            if self._process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError((self._folder / "server.log").read_text()[-2_000:])
