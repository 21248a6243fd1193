"""Starts a Spark session with settings for small batches and Python workers.

The reason for each setting (measured on two cores, PySpark 4.3):

    checkpoint file manager    the default forks a process for every file: 320 → 60 ms per batch
    daemon module              workers are forked with all modules loaded (daemon.py)
    unix domain sockets        workers and Spark communicate without TCP
    class archive              maps loaded and verified classes (java_archive.py): saves 5 s
    serial collector           starts faster and pauses for a shorter time on few cores
    late second compiler       methods are optimised by the JVM's second compiler after ten times as
                               many calls as by default: it takes 9 instead of 13 s of CPU to the
                               first item, and hot loops reach the limit within a second of work
    -Xss16m                    stopping a query within foreachBatch overflows a smaller stack
    SPARK_HOME with links      workers import compiled PySpark modules from its folder instead of a
                               zip file that each one compiles again: 1.0 → 0.25 s for each start
    raw local file system      writes no checksum file for each file of a checkpoint
    non-empty checkpoints      a query that is interrupted while it writes its first offset leaves a
                               temporary file, and Spark would then refuse to start it again
    no Python for the driver   Spark would start two Python processes that look for installed data
                               sources (0.5 s); it does not if it finds no Python of its own
                               (`_without_lookup`). Ours are registered by name
    polling delay              sources are polled 40 times a second
    jars                       Spark's Kafka connector, where it is installed (spark_jars.py)
    loopback                   with a local master nothing is reachable from other machines
    authentication             on a cluster, as far as its master allows (`security_settings`)
    UTC                        timestamps do not depend on the time zone of the machine

Rejected: only the JVM's first compiler (-XX:TieredStopAtLevel=1). A run starts two seconds earlier,
since the second compiler uses the cores in the first minute; but Spark reads Parquet 30 % slower.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.model.errors import PipelineError
from headgate.pipeline.java_archive import archive_options, find_java
from headgate.pipeline.spark_jars import jar_settings

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
LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
FEW_CORES = 4
LOOPBACK = "127.0.0.1"
POLL_S = 0.05
DRIVER_PYTHON = "PYSPARK_DRIVER_PYTHON"
SECRET_VARIABLE = "HEADGATE_SPARK_SECRET"
"""The secret of a standalone cluster, or file:PATH."""
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

_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d{0,3})(,\s*\d+)?\])?|local-cluster\[[\d,\s]+\]|spark://\S+|k8s://\S+|yarn"
)
LOST_SPARK = (
    "Spark's JVM has ended; nothing is lost: start the run again, or let whatever watches over it "
    "do so"
)


def start_session(
    master: str = "local[*]", *, name: str = "headgate", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The session of this process. `settings` override those of this module."""
    check_master(master)
    require_java()
    # Workers must run the Python that has Headgate installed, not the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_HOME", str(_linked_home()))
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # otherwise `spark-submit` has set it
        builder = builder.master(master)
    chosen = {**SETTINGS, **jar_settings(), **security_settings(master), **(settings or {})}
    chosen[JAVA_OPTIONS] = " ".join([*_java_options(), chosen.get(JAVA_OPTIONS, "")]).strip()
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        with _without_lookup():
            session: SparkSession = builder.getOrCreate()
    except PySparkException as error:
        first = (str(error).strip() or "no reason given").splitlines()[0]
        raise PipelineError(f"Spark does not start with --master {master}: {first}") from None
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def _without_lookup() -> Iterator[None]:
    """A JVM that is started in the `with` block looks for no installed Python data sources."""
    is_given = DRIVER_PYTHON in os.environ
    os.environ.setdefault(DRIVER_PYTHON, "none")
    try:
        yield
    finally:
        if not is_given:
            del os.environ[DRIVER_PYTHON]


def check_master(master: str) -> None:
    """
    >>> check_master("foo://x")
    Traceback (most recent call last):
    headgate.model.errors.PipelineError: --master: 'foo://x' is no master of Spark: expected \
local[*], local[4], spark://host:7077, k8s://host:443 or yarn
    """
    if not _MASTER.fullmatch(master):
        known = "local[*], local[4], spark://host:7077, k8s://host:443 or yarn"
        raise PipelineError(f"--master: '{master}' is no master of Spark: expected {known}")


def security_settings(master: str) -> dict[str, str]:
    """Who can reach the driver and the executors, and read what they send.

    local              loopback only
    yarn, k8s          authenticated and encrypted, by a secret that Spark makes and passes on
    spark:// (HEADGATE_SPARK_SECRET is set)    the same, by the secret of the cluster
    spark://           as the cluster is configured: a standalone master and its workers pass
                       their own secret to executors, so an application cannot choose one
    """
    if master.startswith("local"):
        return {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    secret = os.environ.get(SECRET_VARIABLE, "")
    if secret.startswith("file:"):
        try:
            secret = Path(secret.removeprefix("file:")).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise PipelineError(f"{SECRET_VARIABLE}: {error}") from None
    if master.startswith("spark://") and not secret:
        return {}
    own = {"spark.authenticate.secret": secret} if secret else {}
    return {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.io.encryption.enabled": "true",
        **own,
    }


@contextmanager
def quiet(session: SparkSession) -> Iterator[None]:
    """Switch Spark's log off within the `with` block."""
    if is_alive(session):
        session.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        if is_alive(session):
            session.sparkContext.setLogLevel("ERROR")


def mute(session: SparkSession) -> Callable[[], None]:
    """Discard what the JVM, and processes that it starts from now on, print to standard error. The
    function that is returned ends this. Spark's log is not affected."""
    java = session.sparkContext._jvm.java  # type: ignore[union-attr]
    before = java.lang.System.err
    java.lang.System.setErr(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))
    return lambda: java.lang.System.setErr(before)


def is_alive(session: SparkSession) -> bool:
    """Whether the JVM that this process has started is running; True if another process has
    started it."""
    process = getattr(session.sparkContext._gateway, "proc", None)
    return process is None or process.poll() is None


def abandon_start(starting: Future[SparkSession]) -> None:
    """End the JVM of a session that is still starting. Returns when it has ended."""
    while not starting.done():
        process = getattr(SparkContext._gateway, "proc", None)
        if process is not None:
            process.kill()
        wait([starting], timeout=POLL_S)
    if starting.exception() is not None:
        SparkContext._gateway = SparkContext._jvm = None  # the next session starts another JVM


def _java_options() -> list[str]:
    options = ["-Xss16m", f"-Dlog4j2.configurationFile={_log_settings()}", *archive_options()]
    if (os.cpu_count() or 1) <= FEW_CORES:
        options += ["-XX:+UseSerialGC", *LATE_COMPILER]
    return options


def require_java() -> None:
    if find_java() is None:
        raise PipelineError("Spark needs Java 17 or later: install it, or set JAVA_HOME")


def _linked_home() -> Path:
    """A SPARK_HOME with links to those folders of PySpark that the JVM needs."""
    installed = Path(pyspark.__file__).parent
    home = _user_folder() / f"spark-{pyspark.__version__}-links"
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
    """The path of the log settings. They are not in a folder `conf`: with a class archive, folders
    in the class path must be empty."""
    path = _user_folder() / "log4j2.properties"
    fresh = path.with_name(f".log4j2-{os.getpid()}")
    fresh.write_text(LOG4J, encoding="utf-8")
    fresh.replace(path)
    return path


def _user_folder() -> Path:
    """A temporary folder that only this user can write to."""
    folder = Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise PipelineError(f"{folder} belongs to another user; set TMPDIR")
    return folder
