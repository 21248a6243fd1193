"""Addresses of logs: which are taken, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.api.delivery import environment_config
from headgate.model.errors import InvalidValue, StateError
from headgate.store.data_folder import DataFolder, claim_folder, find_folder
from headgate.store.log_storage import FolderStorage
from headgate.store.object_storage import ObjectStorage
from headgate.store.open_storage import checked_folder, checked_log, open_storage


@pytest.mark.parametrize(
    ("address", "folder"),
    [("data", "data"), ("/srv/hg", "/srv/hg"), ("file:///srv/my%20hg", "/srv/my hg")],
)
def test_a_folder(address: str, folder: str) -> None:
    storage = open_storage(address)
    assert isinstance(storage, FolderStorage)
    assert storage.root == Path(folder)


@pytest.mark.parametrize("address", ["s3://bucket/hg/", "gs://bucket", "az://container/a/b"])
def test_an_object_store(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    storage = open_storage(address)
    assert isinstance(storage, ObjectStorage)
    assert storage.url == address.rstrip("/")
    assert open_storage(address) is storage, "one for each process"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3a://bucket/hg", "did you mean s3://"),
        ("abfss://c@a/hg", "did you mean az://"),
        ("http://host/hg", "Accepted are s3://"),
        ("hdfs://host/hg", "Accepted are s3://"),
        ("s3://key:secret@bucket/hg", "has no keys"),
        ("s3://bucket/hg?region=x", "has no keys or options"),
        ("s3:/bucket", "names no bucket"),
        ("s3:///hg", "names no bucket"),
        ("file://host/hg", "names no folder of this machine"),
    ],
)
def test_what_cannot_work_is_refused(address: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message) as refused:
        checked_log(address)
    assert "secret" not in str(refused.value)
    with pytest.raises(InvalidValue):
        open_storage(address)


def test_an_endpoint_without_encryption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://storage.example:9000")
    with pytest.raises(InvalidValue, match="without encryption"):
        open_storage("s3://bucket/plain")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    open_storage("s3://bucket/plain")
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    open_storage("s3://bucket/loopback")


@pytest.mark.parametrize("folder", [Path("s3a://bucket/hg"), "s3://bucket/hg"])
def test_the_folder_of_a_run_has_no_scheme(folder: str | Path) -> None:
    with pytest.raises(InvalidValue, match="the log can be at a URL: --log s3://"):
        checked_folder(folder)
    with pytest.raises(InvalidValue, match="write the path '/srv/hg'"):
        checked_folder("file:///srv/hg")


def test_a_folder_has_one_log_for_ever(tmp_path: Path) -> None:
    path, log = tmp_path / "data", f"file://{tmp_path}/log"
    assert claim_folder(path, str(tmp_path / "log")) == DataFolder(path, log)
    assert claim_folder(path, log) == find_folder(path) == DataFolder(path, log)
    with pytest.raises(StateError, match=f"add --log {log}"):
        claim_folder(path)
    with pytest.raises(StateError, match="start with a new folder"):
        claim_folder(path, str(tmp_path / "other"))
    own = tmp_path / "own"
    (own / "log").mkdir(parents=True)
    with pytest.raises(StateError, match="is in it: leave --log out"):
        claim_folder(own, log)
    assert claim_folder(own) == find_folder(own) == DataFolder(own)


def test_a_folder_has_one_delivery_database_for_ever(tmp_path: Path) -> None:
    path, state = tmp_path / "data", "postgresql://me:one@db/headgate"
    assert claim_folder(path, state=state).delivery_database == state
    assert find_folder(path).delivery_database == claim_folder(path).delivery_database == state
    assert (path / "state.url").stat().st_mode & 0o777 == 0o600
    with pytest.raises(StateError, match="would deliver everything again"):
        claim_folder(path, state="postgresql://me:one@other/headgate")
    changed = "postgresql://you:two@db/headgate"
    assert claim_folder(path, state=changed).state == find_folder(path).state == changed
    own = tmp_path / "own"
    assert claim_folder(own) == DataFolder(own)
    assert not find_folder(own).has_deliveries
    own.mkdir()
    (own / "deliver.db").touch()
    assert find_folder(own).has_deliveries
    with pytest.raises(StateError, match=r"recorded in its deliver\.db"):
        claim_folder(own, state=state)


def test_a_worker_needs_the_delivery_database_of_the_run(tmp_path: Path) -> None:
    def database(folder: Path, state: str = "") -> str:
        config = environment_config(
            {}, catalog="c.db", folder=folder, state=state, output=tmp_path, stylesheets=tmp_path
        )
        return config.database

    claimed, state = tmp_path / "data", "postgresql://me@db/headgate"
    with pytest.raises(StateError, match="its delivery database by --state"):
        database(claimed)
    claim_folder(claimed, state=state)
    assert database(claimed) == database(claimed, state) == state
    assert database(tmp_path / "elsewhere", state) == state
    with pytest.raises(StateError, match="leave --state out"):
        database(claimed, "postgresql://me@other/headgate")


def test_a_log_that_cannot_be_reached_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("this is no folder")
    with pytest.raises(OSError, match="blocked"):
        claim_folder(tmp_path / "data", str(blocked))
    monkeypatch.chdir(tmp_path)
    assert claim_folder(Path("data")) == DataFolder(Path("data"))
