"""A Spark session, set up for small batches and Python workers.

Why each setting is there (measured on two cores, PySpark 4.3):

    checkpoint file manager    the default one forks a process for every file: 320 → 60 ms a batch
    daemon module              workers are forked with everything loaded (daemon.py)
    unix domain sockets        workers and Spark talk without TCP
    class archive              classes of Spark, loaded and checked before (java_archive.py): 5 s
    serial collector           on few cores its start and its pauses are shorter
    -Xss16m                    stopping a query within foreachBatch overflows a smaller stack
    SPARK_HOME with links      workers import PySpark from its folder, compiled, not from a zip file
                               that is compiled anew by each of them: 1.0 → 0.25 s for each start
    raw local file system      no checksum file beside each file of a checkpoint
    checkpoints begun before   a query that was cut off while it wrote its very first offset leaves
                               a file beside it, and Spark would refuse to start it ever again
    polling delay              how often a source is asked for more: 40 times a second
    UTC                        timestamps mean the same everywhere

Rejected: the JVM's first compiler only (-XX:TieredStopAtLevel=1). A run starts two seconds earlier,
as the second one takes the cores for the first minute; but Spark then reads Parquet 30 % slower.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from headgate.model.errors import PipelineError
from headgate.pipeline.java_archive import archive_options

Session = SparkSession
ARROW_ROWS = 50_000
LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %c{1}: %m%n%ex{short}
"""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
FEW_CORES = 4
SETTINGS = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.python.daemon.module": "headgate.pipeline.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.pollingDelay": "25ms",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def start_session(
    master: str = "local[*]", *, name: str = "headgate", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The session of this process; what is set here can be set otherwise by `settings`."""
    require_java()
    # Workers must run the Python that has Headgate installed, not the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_HOME", str(_linked_home()))
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else `spark-submit` has started it, and knows
        builder = builder.master(master)
    chosen = {**SETTINGS, **(settings or {})}
    chosen[JAVA_OPTIONS] = " ".join([*_java_options(), chosen.get(JAVA_OPTIONS, "")]).strip()
    for key, value in chosen.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def quiet(session: SparkSession) -> Iterator[None]:
    """Spark's log is silent meanwhile."""
    if is_alive(session):
        session.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        if is_alive(session):
            session.sparkContext.setLogLevel("ERROR")


def mute(session: SparkSession) -> Callable[[], None]:
    """What the JVM and processes that it starts from now on print to its standard error goes
    nowhere, until what is returned is called. Its log is not printed this way."""
    java = session.sparkContext._jvm.java  # type: ignore[union-attr]
    before = java.lang.System.err
    java.lang.System.setErr(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))
    return lambda: java.lang.System.setErr(before)


def is_alive(session: SparkSession) -> bool:
    """Whether the JVM lives that this process has started; of another's, nothing is known."""
    process = getattr(session.sparkContext._gateway, "proc", None)
    return process is None or process.poll() is None


def _java_options() -> list[str]:
    options = ["-Xss16m", f"-Dlog4j2.configurationFile={_log_settings()}", *archive_options()]
    return [*options, "-XX:+UseSerialGC"] if (os.cpu_count() or 1) <= FEW_CORES else options


def require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and Path(home, "bin", "java").exists()) and shutil.which("java") is None:
        raise PipelineError("Spark needs Java 17 or later: install it, or set JAVA_HOME")


def _linked_home() -> Path:
    """A folder that has of PySpark's only what the JVM needs."""
    installed = Path(pyspark.__file__).parent
    home = _own_folder() / f"spark-{pyspark.__version__}-links"
    home.mkdir(exist_ok=True)
    for part in ("bin", "jars", "sbin"):
        link = home / part
        if link.is_symlink() and link.readlink() == installed / part:
            continue
        fresh = home / f".{part}-{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(installed / part)
        fresh.replace(link)
    return home


def _log_settings() -> Path:
    """Not in a folder `conf`: with a class archive, no folder in the class path may have files."""
    path = _own_folder() / "log4j2.properties"
    fresh = path.with_name(f".log4j2-{os.getpid()}")
    fresh.write_text(LOG4J, encoding="utf-8")
    fresh.replace(path)
    return path


def _own_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise PipelineError(f"{folder} belongs to somebody else; set TMPDIR")
    return folder
