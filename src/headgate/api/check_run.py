"""Everything about a run that can be checked before Spark starts, which takes seconds.

    check_machine    folders     no URL; can be made and written to; run by no other process;
                                 statements read files of none of ours
                     log         can be reached, creates an object only if there is none, belongs to
                                 the folder
                     state       the delivery database answers, and belongs to the folder
                     Java        is there, and is new enough
                     jars        those that are named exist
                     metrics     the address is one, and is free
    check_settings   sources     their options; secrets of Kafka's client can be read
                     methods, mail, webhooks

The first error is raised. Nothing is left behind but empty folders. What may change before the run
starts (the lock, the port) is checked again there. `headgate run` checks the settings while Spark's
JVM starts, since what they are checked with takes a second to load.
"""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from headgate.api.running import RunOptions
from headgate.catalog.database import sqlite_file
from headgate.model.errors import PipelineError
from headgate.store.data_folder import DataFolder, claim_folder, make_private_folder
from headgate.store.open_storage import checked_folder

JAVA_LEAST = 17
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def check_run(
    options: RunOptions, *, metrics: str = "off", jars: str = "", catalog: str = ""
) -> None:
    """An error if a run with these options could not start. `metrics` is HOST:PORT or 'off'; `jars`
    is a folder or files, as for `starting_spark`."""
    check_machine(options, metrics=metrics, jars=jars, catalog=catalog)
    check_settings(options)


def check_machine(
    options: RunOptions, *, metrics: str = "off", jars: str = "", catalog: str = ""
) -> None:
    check_folders(options)
    if options.data is not None:
        own = {"--folder": options.folder, "--output": options.output}
        check_data_root(options.data, own, catalog=catalog)
    check_jars(jars)
    check_java()
    check_metrics(metrics)


def check_settings(options: RunOptions) -> None:
    options.settings()  # sources, methods, mail and webhooks
    check_kafka(options)


def check_folders(options: RunOptions) -> None:
    checked_folder(options.folder)
    read = {"data": options.data, "stylesheets": options.stylesheets}
    for name, path in {"output": options.output, **read}.items():
        if path is not None:
            refuse_url(name, path)
    for name, path in read.items():
        if path is not None and not path.is_dir():
            raise PipelineError(f"--{name}: there is no folder '{path}'")
    for name, path in (("folder", options.folder), ("output", options.output)):
        _check_writable(name, path)
    folder = options.folder.absolute()
    with DataFolder(folder).lock():
        claimed = claim_folder(folder, options.log, state=options.state, record=False)
    check_state(claimed.delivery_database)


def check_state(database: str) -> None:
    """A delivery database that is a server must answer; a file is made by the run."""
    if "://" in database:
        from headgate.deliver.delivery_database import DeliveryDatabase  # noqa: PLC0415

        with DeliveryDatabase(database):
            pass


def check_data_root(data: Path, own: Mapping[str, Path], *, catalog: str = "") -> None:
    """That statements, which may read any file below the folder of data, read none of ours."""
    root = data.resolve()
    for name, path in own.items():
        folder = path.resolve()
        if folder.is_relative_to(root) or root.is_relative_to(folder):
            raise PipelineError(
                f"--data: '{data}' and {name} '{path}' overlap, and statements would read what a "
                "run writes: name a folder that holds only the files of sources"
            )
    file = sqlite_file(catalog)
    if file is not None and file.resolve().is_relative_to(root):
        raise PipelineError(
            f"--data: '{data}' contains the catalog '{file}', and statements would read it: name a "
            "folder that holds only the files of sources"
        )


def refuse_url(name: str, path: Path) -> None:
    """
    >>> refuse_url("output", Path("s3a://bucket/hg"))
    Traceback (most recent call last):
    headgate.model.errors.PipelineError: --output: 's3a://bucket/hg' is a URL, and a run needs a \
folder of the file system; mount it, and give its path
    """
    match = _URL.fullmatch(str(path))
    if match is None:
        return
    scheme, rest = match[1], match[2]
    if scheme == "file":
        raise PipelineError(f"--{name}: write the path '/{rest}' in place of a URL")
    raise PipelineError(
        f"--{name}: '{scheme}://{rest}' is a URL, and a run needs a folder of the file system; "
        "mount it, and give its path"
    )


def _check_writable(name: str, path: Path) -> None:
    try:
        if name == "folder":
            make_private_folder(path)
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise PipelineError(f"--{name}: '{path}' cannot be written to: {error.strerror}") from None


def check_kafka(options: RunOptions) -> None:
    from headgate.pipeline.sources.kafka_topics import client_settings  # noqa: PLC0415 - Spark

    client_settings(options.sources)
    starting = options.sources.get("starting", "earliest")
    if starting not in ("earliest", "latest"):
        raise PipelineError(f"option 'starting' must be earliest or latest, not '{starting}'")


def check_jars(jars: str) -> None:
    from headgate.pipeline.spark_jars import spark_jars  # noqa: PLC0415 - Spark

    found = spark_jars(jars)
    for jar in found:
        if not jar.is_file():
            raise PipelineError(f"--jars: there is no file '{jar}'")
    if jars and not found:
        raise PipelineError(f"--jars: there are no jars in '{jars}'")


def check_java() -> None:
    from headgate.pipeline.java_archive import find_java  # noqa: PLC0415 - Spark

    java = find_java()
    if java is None:
        raise PipelineError(f"Spark needs Java {JAVA_LEAST} or later: install it, or set JAVA_HOME")
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipelineError(f"'{java}' cannot be run: {error}") from None
    version = _JAVA_VERSION.search(done.stderr + done.stdout)
    if done.returncode or version is None:
        raise PipelineError(
            f"'{java} -version' fails: {(done.stderr or 'no answer').strip()[:200]}"
        )
    if int(version[1]) < JAVA_LEAST:
        raise PipelineError(
            f"'{java}' is Java {version[1]}, and Spark needs {JAVA_LEAST} or later: set JAVA_HOME"
        )


def check_metrics(address: str) -> None:
    if address == "off":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise PipelineError(f"--metrics: expected HOST:PORT or 'off', not '{address}'")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host.strip("[]"), int(port)))
    except OSError as error:
        raise PipelineError(
            f"metrics cannot be served at {address}: {error.strerror or error}; choose another "
            "address, or 'off'"
        ) from None
