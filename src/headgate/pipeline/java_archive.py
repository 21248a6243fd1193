"""Spark's classes in an archive that the JVM maps, so that a run starts five seconds earlier.

A JVM that starts Spark reads, checks and links some ten thousand classes from jar files. Java can
keep them as they are in memory then (application class-data sharing), in a file of 170 MB. It is
made once, when Headgate is set up:

    python -m headgate.pipeline.java_archive

and used by every run that finds it. It belongs to one Java and one PySpark, so its name is made of
both. Without it, or if the JVM does not like it, everything works as before, only slower.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

MAKING = "HEADGATE_MAKES_JAVA_ARCHIVE"
PATIENCE_S = 300
KEPT = 3
"""Archives for as many environments stay; each has 170 MB."""
# What a run needs of Spark: a job, a Python job on Arrow, and batches of a Python source.
_WORK = """
import tempfile, time
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from headgate.pipeline.session import start_session

class Reader(DataSourceStreamReader):
    def initialOffset(self):
        return {"n": 0}
    def latestOffset(self, *_):
        return {"n": int(time.time())}
    def partitions(self, start, end):
        return [InputPartition(1), InputPartition(2)]
    def read(self, partition):
        yield pa.RecordBatch.from_pydict({"id": [1]})

class Source(DataSource):
    @classmethod
    def name(cls):
        return "archived"
    def schema(self):
        return "id long"
    def streamReader(self, schema):
        return Reader()

def same(batches):
    yield from batches

done = []

def take(frame, number):
    done.append(frame.mapInArrow(same, "id long").toArrow())

session = start_session("local[2]")
session.range(10).mapInArrow(same, "id long").toArrow()
session.dataSource.register(Source)
with tempfile.TemporaryDirectory() as folder:
    stream = session.readStream.format("archived").load()
    query = stream.writeStream.foreachBatch(take).option("checkpointLocation", folder).start()
    until = time.monotonic() + 60
    while len(done) < 3 and time.monotonic() < until:
        time.sleep(0.1)
    query.stop()
gateway = session.sparkContext._gateway
session.stop()
gateway.shutdown()
gateway.proc.stdin.close()  # the JVM ends by this, and writes the archive
gateway.proc.wait()
"""


def archive_options() -> list[str]:
    """How the JVM is told of the archive: nothing where there is none."""
    quiet = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    if making := os.environ.get(MAKING):
        return [f"-XX:ArchiveClassesAtExit={making}", *quiet]
    path = archive_path()
    return [f"-XX:SharedArchiveFile={path}", *quiet] if path and path.exists() else []


def archive_path() -> Path | None:
    """Nothing where there is no Java."""
    java = _java()
    if java is None:
        return None
    found = java.stat()
    key = f"{java} {found.st_size} {found.st_mtime_ns} {pyspark.__file__} {pyspark.__version__}"
    return cache_folder() / f"spark-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"


def cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "headgate"


def make_archive() -> Path | None:
    """Make the archive unless it is there. Nothing where it cannot be made."""
    path = archive_path()
    if path is None or path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        fresh = Path(folder) / "fresh.jsa"
        environment = {**os.environ, MAKING: str(fresh)}
        subprocess.run(
            [sys.executable, "-c", _WORK],
            env=environment,
            check=False,
            timeout=PATIENCE_S,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if not fresh.exists():
            return None
        fresh.replace(path)
    archives = sorted(path.parent.glob("spark-*.jsa"), key=lambda each: each.stat().st_mtime)
    for old in archives[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else None
    found = found or shutil.which("java")
    return Path(found).resolve() if found else None


if __name__ == "__main__":
    made = make_archive()
    sys.stdout.write(f"{made}\n" if made else "no archive could be made; runs start slower\n")
