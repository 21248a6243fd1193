"""An archive of Spark's Java classes that the JVM maps at start, so that a run starts 5 s earlier.

A JVM that starts Spark reads, verifies and links about ten thousand classes from jar files. Java
can store them in their memory layout (application class-data sharing), in a file of 170 MB. It is
made once, by a run that `headgate prepare` starts (rehearsal.py); every later run uses it. The
archive fits one Java and one PySpark; its name is a hash of both. If it is missing, or the JVM
rejects it, a run starts without it, only slower.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pyspark

MAKING_VARIABLE = "HEADGATE_MAKES_JAVA_ARCHIVE"
KEPT = 3
"""The number of archives that are kept, each for one environment and of 170 MB."""


def archive_options() -> list[str]:
    """The JVM options that use the archive, or make it; empty if there is none."""
    quiet = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    if making := os.environ.get(MAKING_VARIABLE):
        return [f"-XX:ArchiveClassesAtExit={making}", *quiet]
    path = archive_path()
    return [f"-XX:SharedArchiveFile={path}", *quiet] if path and path.exists() else []


def archive_path() -> Path | None:
    """Where the archive for this Java and PySpark is, or would be; None without Java."""
    found = find_java()
    if found is None:
        return None
    java = found.resolve()
    stat = java.stat()
    key = f"{java} {stat.st_size} {stat.st_mtime_ns} {pyspark.__file__} {pyspark.__version__}"
    return cache_folder() / f"spark-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"


def cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "headgate"


def keep_newest() -> None:
    """Remove archives of environments that were used before the last KEPT ones."""
    archives = sorted(cache_folder().glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime)
    for old in archives[:-KEPT]:
        old.unlink(missing_ok=True)


def find_java() -> Path | None:
    """The Java that Spark uses: that of JAVA_HOME, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    command = shutil.which("java", path=f"{home}/bin") if home else None
    command = command or shutil.which("java")
    return Path(command) if command else None
