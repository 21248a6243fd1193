"""Files of tickets and news appear in a folder, as time goes.

Law: whoever lists `*.json` or `*.xml` sees whole files only; they are written under another name
and then renamed. They never change afterwards. The oldest are removed, so that a demo that runs
for days does not fill the disk; at pace 1 they are half an hour old by then.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

from headgate.demo.files import KINDS, Files
from headgate.demo.rhythm import Rhythm

EARLIER = 20
"""How many files there are from the beginning."""
WRITTEN_AT_ONCE = 100
"""After a long sleep of the machine only so many are written; the others are left out."""
KEPT = 1_000
TICK_S = 0.25

_log = logging.getLogger(__name__)


class FileWriter:
    """Writes what is new, in a thread of its own, until it is stopped."""

    def __init__(self, folder: Path, rhythm: Rhythm, clock: Callable[[], float]) -> None:
        """The first files are written at once: a folder that cannot be written to is an error."""
        self._folder = folder
        self._rhythm = rhythm
        self._clock = clock
        self._done = threading.Event()
        now_s = clock()
        self._next = {
            each.name: rhythm.latest(each.name, each.gap_s, now_s) + 1 - EARLIER for each in KINDS
        }
        self.write_new()
        self._thread = threading.Thread(target=self._run, name="newsroom files", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def write_new(self) -> None:
        """Write what has been published since the last time."""
        for files in KINDS:
            latest = self._rhythm.latest(files.name, files.gap_s, self._clock())
            first = max(self._next[files.name], latest + 1 - WRITTEN_AT_ONCE)
            for number in range(first, latest + 1):
                text = files.text(files.item(number, self._rhythm))
                write_whole(files.path(self._folder, number), text)
                self._next[files.name] = number + 1
            if first <= latest:
                _remove_oldest(self._folder, files)

    def _run(self) -> None:
        while not self._done.wait(TICK_S):
            try:
                self.write_new()
            except OSError as error:
                # A full disk may have room again; the files are written then.
                _log.warning("no files are written: %s", error)


def write_whole(path: Path, text: str) -> None:
    """Under its name there is all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def _remove_oldest(folder: Path, files: Files) -> None:
    found = sorted(folder.glob(files.pattern), key=lambda path: (len(path.name), path.name))
    for path in found[:-KEPT]:
        path.unlink(missing_ok=True)
