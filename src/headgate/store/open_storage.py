"""Opens the storage of a log by its address, and refuses an address that cannot work.

    headgate-data, /srv/headgate, file:///srv/headgate   a folder
    s3://bucket/prefix                                   Amazon S3, or a server that speaks S3
    gs://bucket/prefix                                   Google Cloud Storage
    az://container/prefix                                Azure Blob Storage

Access to a service is configured as its own tools do, by the environment: AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, GOOGLE_…, AZURE_…; without
keys, by the role of the machine. An address has no keys in it, and none are printed. An endpoint
without encryption is refused unless it is this machine, or AWS_ALLOW_HTTP says so.

`probe` checks what the protocol rests on: of two that create the same object, the second fails.
"""

from __future__ import annotations

import os
import re
import uuid
from datetime import timedelta
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from headgate.model.errors import InvalidValue, LogUnavailable
from headgate.store.log_storage import FolderStorage, LogStorage

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

SERVICES = {"s3": "Amazon S3", "gs": "Google Cloud Storage", "az": "Azure Blob Storage"}
ACCEPTED = "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, or a folder"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_LIKELY = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az"}


def open_storage(address: str | Path) -> LogStorage:
    """The storage at an address; `InvalidValue` says why one cannot work. Nothing is requested."""
    if isinstance(address, Path) or scheme_of(address) == "":
        return FolderStorage(Path(address))
    address = checked_log(address)
    if scheme_of(address) == "file":
        return FolderStorage(Path(unquote(urlsplit(address).path)))
    # The library's threads do not survive a fork, and Spark's workers are forked.
    return _object_storage(address, os.getpid())


def scheme_of(text: str) -> str:
    """The scheme of a URL in lower case; empty for a path.

    >>> scheme_of("S3A://bucket/hg"), scheme_of("data/s3:x"), scheme_of("s3:/bucket")
    ('s3a', '', 's3')
    """
    found = _SCHEME.match(text)
    return "" if found is None else found[1].lower()


def checked_log(text: str) -> str:
    """The address of a log, in one form; `InvalidValue` for one that cannot work."""
    scheme, parts = scheme_of(text), urlsplit(text)
    if scheme == "":
        return text
    if scheme not in SERVICES and scheme != "file":
        hint = f"; did you mean {_LIKELY[scheme]}://?" if scheme in _LIKELY else ""
        raise InvalidValue(f"a log cannot be at '{scheme}://'{hint} Accepted are {ACCEPTED}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidValue(
            "the address of a log has no keys or options in it: set AWS_ACCESS_KEY_ID and the "
            "like in the environment"
        )
    if scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise InvalidValue(f"'{text}' names no folder of this machine: write file:///folder")
        return f"file://{parts.path}"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", parts.netloc):
        raise InvalidValue(f"'{text}' names no bucket: write {scheme}://bucket/prefix")
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def checked_folder(folder: str | Path) -> Path:
    """The folder of a run, which is a folder of this machine."""
    scheme = scheme_of(str(folder))
    if scheme == "":
        return Path(folder)
    if scheme == "file":
        path = str(folder).split(":", maxsplit=1)[1].lstrip("/")
        raise InvalidValue(f"write the path '/{path}' in place of the URL '{folder}'")
    raise InvalidValue(
        f"the folder of a run is a folder of this machine, not '{folder}'; the log can be at a "
        f"URL: --log {_LIKELY.get(scheme, scheme)}://…"
    )


def probe(storage: LogStorage, address: str) -> None:
    """Create an object twice: the second time must fail. `LogUnavailable` if the storage cannot be
    reached, or takes the second one too."""
    name = f"probe/{uuid.uuid4().hex}"
    try:
        first, second = storage.create(name, b"1"), storage.create(name, b"2")
        content = storage.read(name)
    except FileNotFoundError:
        raise LogUnavailable(f"there is no bucket for '{address}': make it first") from None
    storage.remove(name)
    if not first or second or content != b"1":
        raise LogUnavailable(
            f"'{address}' cannot have a log: its server created an object that existed already. "
            "It does not support If-None-Match on PUT; use one that does, or a folder"
        )


@lru_cache(maxsize=16)
def _object_storage(address: str, _process: int) -> LogStorage:
    from obstore.exceptions import BaseError  # noqa: PLC0415 - only logs at URLs need it
    from obstore.store import from_url  # noqa: PLC0415

    from headgate.store.object_cache import ObjectCache  # noqa: PLC0415
    from headgate.store.object_storage import ObjectStorage  # noqa: PLC0415

    retries: RetryConfig = {"max_retries": 6, "retry_timeout": timedelta(seconds=20)}
    options: ClientConfig = {"timeout": timedelta(seconds=60)}
    if address.startswith("s3://") and _is_plain_http_allowed():
        options["allow_http"] = True
    try:
        store = from_url(address, client_options=options, retry_config=retries)
    except (BaseError, ValueError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise InvalidValue(f"'{address}' cannot be opened: {reason}") from None
    return ObjectStorage(store, address, ObjectCache(address))


def _is_plain_http_allowed() -> bool:
    """Whether the S3 endpoint of the environment may be without encryption."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if not endpoint.startswith("http://"):
        return False
    host = urlsplit(endpoint).hostname or ""
    if os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true", "yes") or _is_loopback(host):
        return True
    raise InvalidValue(
        f"the S3 endpoint '{host}' is without encryption: use https://, or set AWS_ALLOW_HTTP=true"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
