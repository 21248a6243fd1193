"""What fetches the feeds of a query: the inbox, the threads that fill it, and the list of feeds.

Only the process that plans the offsets of a query imports this module (feeds_source.py). Spark
starts four more Python processes for each query; HTTP and the feed parsers would cost each of them
0.4 s of CPU when a run starts.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial

from headgate.acquire.acquirer import Acquirer, AcquirerSettings
from headgate.acquire.inbox import Inbox
from headgate.acquire.inbox_tables import ListedFeed
from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.acquire.refresh_queue import DEFAULT_POLICY, RefreshPolicy
from headgate.acquire.retry_requests import take_retries
from headgate.acquire.source_list import WatchedList
from headgate.model.errors import PipelineError
from headgate.model.schema import Schema
from headgate.pipeline.log_format import configure_logs
from headgate.pipeline.sources.source_format import Options, rows_file

log = logging.getLogger(__name__)

FIRST_S = 1.5
"""How long a new query waits for its first document."""
LOCK_WAIT_S = 30.0
"""A restarted query waits this long for the process of its predecessor to release the inbox."""


class Acquisition:
    def __init__(self, options: Options, schema: Schema) -> None:
        configure_logs()  # a process of its own
        settings = acquirer_settings(options)
        self.inbox = Inbox(options.path("folder"), wait_s=LOCK_WAIT_S)
        self.acquirer = Acquirer(
            self.inbox, partial(rows_file, schema=schema), schema=schema, settings=settings
        )
        self._list = WatchedList(options.path("list"))
        self.read_list()
        self.acquirer.start()
        self._first_until = time.monotonic() + FIRST_S

    def read_list(self) -> None:
        """Pass the feeds of the list file to the acquirer, if the file has changed."""
        try:
            source_list = self._list.changed()
        except PipelineError as error:
            log.error("%s", error)  # the previous list stays in force
            return
        if source_list is not None:
            self.acquirer.watch(
                ListedFeed(source.name, source.path, source.weight)
                for source in source_list.sources
            )

    def read_retries(self) -> None:
        """Fetch what somebody has asked to be fetched now."""
        if names := take_retries(self.inbox.folder):
            self.acquirer.retry(names)

    def wait_for_first(self, begin: int) -> None:
        """Wait for the first document, once and for FIRST_S at most. Spark begins a query with a
        batch, and an empty one would only delay the next."""
        while self.inbox.last <= begin and time.monotonic() < self._first_until:
            time.sleep(0.01)
        self._first_until = 0.0

    def close(self) -> None:
        self.acquirer.close()
        self.inbox.close()


def acquirer_settings(options: Options) -> AcquirerSettings:
    limits = replace(
        DEFAULT_LIMITS,
        host_delay_s=options.number("host_delay_s", DEFAULT_LIMITS.host_delay_s),
        total_s=options.number("fetch_s", DEFAULT_LIMITS.total_s, least=0.1),
    )
    policy = RefreshPolicy(
        options.number("interval_min_s", DEFAULT_POLICY.interval_min_s),
        options.number("interval_max_s", DEFAULT_POLICY.interval_max_s),
        options.number("backoff_s", DEFAULT_POLICY.backoff_first_s),
    )
    return AcquirerSettings(
        threads=options.whole("threads", 16),
        fetches_per_minute=options.number("budget", 600.0),
        policy=policy,
        limits=limits,
        allowed=options.allowed(),
    )
