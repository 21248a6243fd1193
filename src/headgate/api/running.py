"""Running what a catalog holds: the options of a run, Spark's session, and the run as a context.

with hg.open("headgate.db") as h:
    with h.run(folder="data") as run:        # makes a Spark session, or takes one: spark=…
        ...
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from headgate.model.errors import PipelineError

if TYPE_CHECKING:
    from headgate.api.spark import DataFrame
    from headgate.catalog.catalog import Catalog
    from headgate.pipeline.methods import Methods
    from headgate.pipeline.run import Run
    from headgate.pipeline.run_context import RunSettings
    from headgate.pipeline.session import Session

MASTER_DEFAULT = "local[*,4]"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run, as `headgate run` and `Headgate.run` take them."""

    folder: Path
    """Everything that must survive the run, except the log if it has an address of its own."""
    log: str = ""
    """The address of the log, such as s3://bucket/prefix; empty for the folder."""
    state: str = ""
    """The URL of the delivery database, such as postgresql://host/name; empty for the folder."""
    output: Path = Path("feeds")
    """Where `output file` writes."""
    stylesheets: Path = field(default_factory=Path)
    data: Path | None = None
    """The folder that statements may read files from; without one, they read none."""
    lateness_s: float = 60.0
    """How long window joins wait for late items."""
    operators: tuple[str, ...] = ()
    """Modules that operators may come from."""
    operator_reads: tuple[str, ...] = ()
    """Files and folders that operators may read."""
    operator_network: bool = False
    public_url: str = ""
    """By which URL the world reaches `headgate serve`; empty for that of the environment."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Options of the sources: allow, brokers, budget, interval_min_s, …"""
    factorize: str = "auto"
    operator_order: str = "adaptive"
    join_scheme: str = ""
    """Without a name, the default of tables/."""
    feed_share: float = 0.2
    """A feed that takes more of the cores is suspended; 0: none ever is (feed_budget.py)."""

    def methods(self) -> Methods:
        from headgate.pipeline.methods import Methods  # noqa: PLC0415 - Spark

        chosen = {"factorize": self.factorize, "operator_order": self.operator_order}
        if self.join_scheme:
            chosen["join_scheme"] = self.join_scheme
        return Methods(**chosen)

    def settings(self, console: TextIO | None = None) -> RunSettings:
        from headgate.deliver.output_mail import MailSettings  # noqa: PLC0415
        from headgate.deliver.output_webhook import WebhookSettings  # noqa: PLC0415
        from headgate.deliver.settings import (  # noqa: PLC0415
            DeliverySettings,
            asks_for_confirmation,
            checked_public_url,
        )
        from headgate.operators.declaration import OperatorGrants  # noqa: PLC0415
        from headgate.pipeline.feed_budget import BudgetRules  # noqa: PLC0415
        from headgate.pipeline.operator_stage import OperatorRules  # noqa: PLC0415 - Spark
        from headgate.pipeline.run_context import RunSettings  # noqa: PLC0415
        from headgate.pipeline.sources.source_format import Options  # noqa: PLC0415

        webhook = WebhookSettings.from_environment(os.environ)
        allowed = Options(self.sources).allowed()
        self.output.mkdir(parents=True, exist_ok=True)
        return RunSettings(
            self.folder,
            DeliverySettings(
                self.output,
                self.stylesheets,
                mail=MailSettings.from_environment(os.environ),
                webhook=replace(webhook, allowed=allowed),
                public_url=checked_public_url(
                    self.public_url or os.environ.get("HEADGATE_PUBLIC_URL", "")
                ),
                confirm_mail=asks_for_confirmation(os.environ),
                console=console or sys.stdout,
            ),
            log=self.log,
            state=self.state,
            base=self.data,
            options=self.sources,
            lateness_s=self.lateness_s,
            operators=OperatorRules(
                self.operators,
                grants=OperatorGrants(
                    tuple(os.path.abspath(each) for each in self.operator_reads),
                    self.operator_network,
                ),
            ),
            methods=self.methods(),
            budget=BudgetRules(share=self.feed_share),
        )


@contextmanager
def starting_spark(master: str = MASTER_DEFAULT, *, jars: str = "") -> Iterator[Future[Session]]:
    """Spark starts in the background: it takes seconds, in which settings are checked and a script
    is applied. It is stopped at the end; after an error also if it is still starting. `jars` are a
    folder or files, in place of those of the environment."""
    # Late imports: what runs takes a second to load.
    from headgate.pipeline.session import (  # noqa: PLC0415
        LOST_SPARK,
        abandon_start,
        check_master,
        is_alive,
        require_java,
        start_session,
    )
    from headgate.pipeline.spark_jars import jar_settings  # noqa: PLC0415

    check_master(master)
    require_java()
    with ThreadPoolExecutor(1, thread_name_prefix="spark") as thread:
        session = thread.submit(start_session, master, settings=jar_settings(jars))
        try:
            yield session
        except BaseException as error:
            if not session.done():
                abandon_start(session)
                raise
            is_lost = session.exception() is None and not is_alive(session.result())
            if is_lost and isinstance(error, Exception):
                # Whatever failed, this is the cause that a person must know.
                raise PipelineError(LOST_SPARK) from None
            raise
        finally:
            if session.exception() is None and is_alive(session.result()):
                session.result().stop()


_IN_MEMORY = ("", "sqlite://", "sqlite:///:memory:")
"""Catalogs that no other process can open."""


@contextmanager
def started_run(
    catalog: Catalog,
    session: Session,
    options: RunOptions,
    *,
    console: TextIO | None = None,
    note: Callable[[str], None] = lambda _: None,
    streams: Mapping[str, DataFrame] | None = None,
) -> Iterator[Run]:
    """A run that has started; it is stopped at the end, and nothing is lost."""
    from headgate.pipeline.run import Run  # noqa: PLC0415 - Spark

    settings = options.settings(console)
    webhook = replace(settings.deliver.webhook, key=catalog.installation_key())
    settings = replace(settings, deliver=replace(settings.deliver, webhook=webhook))
    if catalog.url not in _IN_MEMORY:
        settings = replace(settings, deliver_in="process", catalog_url=catalog.url)
    with Run(catalog, session, settings, note=note, streams=streams) as run:
        run.start()
        yield run
