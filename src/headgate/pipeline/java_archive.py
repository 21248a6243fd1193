"""An archive of Spark's Java classes that the JVM maps at start, so that a run starts 5 s earlier.

A JVM that starts Spark reads, verifies and links about ten thousand classes from jar files. Java
can store them in their memory layout (application class-data sharing), in a file of 170 MB. It is
made once, when Headgate is installed:

    python -m headgate.pipeline.java_archive

Every later run uses it. The archive fits one Java and one PySpark; its name is a hash of both. If
it is missing, or the JVM rejects it, a run starts without it, only slower.
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

MAKING_VARIABLE = "HEADGATE_MAKES_JAVA_ARCHIVE"
TIMEOUT_S = 300
KEPT = 3
"""The number of archives that are kept, each for one environment and of 170 MB."""
# Uses what a run uses of Spark: a job, a Python job on Arrow, and batches of a Python source.
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


def make_archive() -> Path | None:
    """Make the archive unless it exists. Returns its path, or None if it cannot be made."""
    path = archive_path()
    if path is None or path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        fresh = Path(folder) / "fresh.jsa"
        environment = {**os.environ, MAKING_VARIABLE: str(fresh)}
        subprocess.run(
            [sys.executable, "-c", _WORK],
            env=environment,
            check=False,
            timeout=TIMEOUT_S,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if not fresh.exists():
            return None
        fresh.replace(path)
    archives = sorted(path.parent.glob("spark-*.jsa"), key=lambda archive: archive.stat().st_mtime)
    for old in archives[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def find_java() -> Path | None:
    """The Java that Spark uses: that of JAVA_HOME, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    command = shutil.which("java", path=f"{home}/bin") if home else None
    command = command or shutil.which("java")
    return Path(command) if command else None


if __name__ == "__main__":
    archive = make_archive()
    sys.stdout.write(f"{archive}\n" if archive else "no archive could be made; runs start slower\n")
