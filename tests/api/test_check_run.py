"""What is refused before Spark starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.sources.streams import wait_for

from headgate.api.check_run import check_java, check_run
from headgate.api.running import RunOptions
from headgate.model.errors import HeadgateError, StateTaken
from headgate.pipeline.session import SECRET_VARIABLE, security_settings
from headgate.store.data_folder import DataFolder


@pytest.fixture
def options(tmp_path: Path) -> RunOptions:
    (tmp_path / "in").mkdir()
    return RunOptions(tmp_path / "run", output=tmp_path / "feeds", data=tmp_path / "in")


def test_good_options_pass_and_leave_no_lock(options: RunOptions) -> None:
    check_run(options, metrics="127.0.0.1:0")
    check_run(options)
    assert sorted(path.name for path in options.folder.iterdir()) == ["run.lock"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda o: replace(o, folder=Path("s3a://bucket/hg")),
            "a folder of this machine, not 's3a:/bucket/hg'; the log can be at a URL: --log s3://",
        ),
        (lambda o: replace(o, folder=Path("file:///tmp/x")), "write the path '/tmp/x'"),
        (lambda o: replace(o, output=Path("gs://bucket")), "--output"),
        (lambda o: replace(o, data=Path("/none/at/all")), "there is no folder '/none/at/all'"),
        (lambda o: replace(o, folder=Path("/proc/x")), "cannot be written to"),
        (lambda o: replace(o, factorize="best"), "best"),
        (lambda o: replace(o, sources={"allow": "everywhere"}), "option 'allow'"),
        (lambda o: replace(o, sources={"starting": "now"}), "earliest or latest"),
        (
            lambda o: replace(o, sources={"kafka.a": "env:HG_NONE"}),
            "no environment variable HG_NONE",
        ),
        (lambda o: replace(o, sources={"kafka.a": "file:/none"}), "'/none' cannot be read"),
    ],
)
def test_what_cannot_run_is_refused(
    options: RunOptions, change: Callable[[RunOptions], RunOptions], message: str
) -> None:
    with pytest.raises(HeadgateError) as caught:
        check_run(change(options))
    assert message in str(caught.value)
    assert not Path("s3a:").exists()


def test_a_folder_that_is_run_is_refused_at_once(options: RunOptions) -> None:
    options.folder.mkdir()
    with DataFolder(options.folder).lock(), pytest.raises(StateTaken, match=str(os.getpid())):
        check_run(options)


def test_a_port_in_use_is_refused(options: RunOptions) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(HeadgateError, match="metrics cannot be served"):
            check_run(options, metrics=f"127.0.0.1:{taken.getsockname()[1]}")
    with pytest.raises(HeadgateError, match="HOST:PORT"):
        check_run(options, metrics="9464")


def test_jars_that_are_missing_are_refused(options: RunOptions, tmp_path: Path) -> None:
    with pytest.raises(HeadgateError, match="there is no file"):
        check_run(options, jars=str(tmp_path / "none.jar"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(HeadgateError, match="there are no jars"):
        check_run(options, jars=str(tmp_path / "empty"))


def test_java_that_is_old_or_missing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    with pytest.raises(HeadgateError, match="install it"):
        check_java()
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_302\"' >&2\n")
    java.chmod(0o755)
    with pytest.raises(HeadgateError, match="is Java 8"):
        check_java()


def test_mail_settings_are_checked(options: RunOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_SMTP_HOST", "localhost")
    monkeypatch.setenv("HEADGATE_SMTP_PORT", "many")
    with pytest.raises(HeadgateError, match="no port"):
        check_run(options)


def test_who_can_reach_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    assert security_settings("local[*,4]")["spark.driver.bindAddress"] == "127.0.0.1"
    assert security_settings("yarn")["spark.authenticate"] == "true"
    assert security_settings("spark://host:7077") == {}
    (tmp_path / "secret").write_text("s3cret\n")
    monkeypatch.setenv(SECRET_VARIABLE, f"file:{tmp_path / 'secret'}")
    assert security_settings("spark://host:7077")["spark.authenticate.secret"] == "s3cret"


@pytest.mark.integration
def test_an_error_while_spark_starts_is_shown_and_ends_its_jvm(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headgate", "run", "--factorize", "best", "--metrics", "off"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 3
    assert "'best' is no method of factorising" in errors
    wait_for(lambda: not group_exists(process.pid))  # a JVM ends after the process that started it


def group_exists(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("data", "overlapped"),
    [
        (".", "--folder"),
        ("run", "--folder"),
        ("run/sources", "--folder"),
        ("feeds", "--output"),
        ("in/..", "--folder"),
        ("link", "--folder"),
        ("catalogs", "the catalog"),
    ],
)
def test_statements_read_none_of_our_folders(
    options: RunOptions, tmp_path: Path, data: str, overlapped: str
) -> None:
    for name in ("run/sources", "feeds", "catalogs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path)
    changed = replace(options, data=tmp_path / data)
    with pytest.raises(HeadgateError, match="holds only the files of sources") as caught:
        check_run(changed, catalog=str(tmp_path / "catalogs" / "headgate.db"))
    assert overlapped in str(caught.value)


def test_without_a_folder_of_data_a_run_can_start(options: RunOptions) -> None:
    check_run(replace(options, data=None), catalog="postgresql://me@host/headgate")
