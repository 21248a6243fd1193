"""The demo's server alone: `python -m headgate.demo --port 8765 --files folder`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from headgate.demo.server import DEFAULT_PORT, Newsroom


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headgate.demo", description="Publish invented feeds on this machine."
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 means any free port")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other texts")
    parser.add_argument("--pace", type=float, default=1.0, help="2 publishes twice as often")
    parser.add_argument("--files", type=Path, help="write tickets/ and news/ into this folder")
    options = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        with Newsroom(options.port, seed=options.seed, pace=options.pace) as newsroom:
            if options.files is not None:
                newsroom.write_files(options.files)
            sys.stdout.write(f"the newsroom is at {newsroom.base_url}/\n")
            sys.stdout.flush()
            stop.wait()
    except (OSError, OverflowError, ValueError) as error:
        sys.stderr.write(f"error: {error}; see --help\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
