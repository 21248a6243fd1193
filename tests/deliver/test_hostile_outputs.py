"""One slow or hostile output holds up nobody: not files, not receivers, not stylesheets."""

from __future__ import annotations

import io
import os
import threading
import time
from pathlib import Path

from tests.deliver.log_world import LogWorld, MemoryCatalog, Sub, news
from tests.deliver.servers import receiver
from tests.deliver.things import settings

from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.output_webhook import WebhookSettings
from headgate.model.addresses import LOOPBACK

LOOP = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:template match="/"><xsl:call-template name="x"><xsl:with-param name="n" select="0"/>
</xsl:call-template></xsl:template>
<xsl:template name="x"><xsl:param name="n"/><xsl:for-each select="//node()|//@*">
<xsl:for-each select="//node()|//@*"><xsl:for-each select="//node()|//@*">
<xsl:for-each select="//node()|//@*"><xsl:for-each select="//node()|//@*">
<xsl:for-each select="//node()|//@*"><xsl:for-each select="//node()|//@*">
<xsl:if test="contains(string(/), 'zzz')">a</xsl:if></xsl:for-each></xsl:for-each></xsl:for-each>
</xsl:for-each></xsl:for-each></xsl:for-each></xsl:for-each></xsl:template></xsl:stylesheet>"""


class StuckConsole(io.StringIO):
    """A terminal that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def write(self, _: str) -> int:
        self.released.wait(120)
        return 0


def test_hostile_outputs_delay_nobody(tmp_path: Path):
    log, catalog, console = LogWorld(tmp_path), MemoryCatalog(), StuckConsole()
    (tmp_path / "stylesheets").mkdir()
    (tmp_path / "stylesheets" / "loop.xsl").write_text(LOOP)
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "pipe.json")
    with receiver() as slow, receiver() as fast:
        slow.answer = lambda *_: (204 if slow.released.wait(120) else 500, {})
        catalog.add(Sub(1, "Rock", "webhook", f"{slow.url}/x"))
        catalog.add(Sub(2, "Rock", "console"))
        for number in (3, 4, 5):
            catalog.add(Sub(number, "Rock", "file", f"{number}.json", stylesheet="loop.xsl"))
        catalog.add(Sub(6, "Rock", "file", "pipe.json"))
        catalog.add(Sub(7, "Rock", "file", "good.json"))
        catalog.add(Sub(8, "Rock", "webhook", fast.url.replace("127.0.0.1", "localhost") + "/y"))
        given = settings(
            tmp_path,
            webhook=WebhookSettings(key=b"key", allowed=LOOPBACK),
            console=console,
            round_budget_s=0.5,
        )
        database = DeliveryDatabase(str(tmp_path / "deliver.db"))
        worker = DeliveryWorker(log.storage, catalog, database, given, now=lambda: log.now)
        began = time.monotonic()
        for name in ("n1", "n2", "n3"):
            log.publish(news(name))
            worker.step(log.now)
        # Ten seconds for all: a hostile output alone could take twenty (a call), or for ever.
        assert time.monotonic() - began < 15
        assert (tmp_path / "out" / "good.json").read_bytes().count(b'"title": "title') == 3
        assert (tmp_path / "out" / "pipe.json").is_file()
        until = time.monotonic() + 300
        while len(fast.calls) < 3 and time.monotonic() < until:
            worker.step(log.now)
        assert len(fast.calls) == 3
        assert len(slow.calls) <= 2
        console.released.set()
        slow.released.set()
        worker.close()
        database.close()
