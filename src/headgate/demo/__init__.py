"""The bundled newsroom: a few feeds that are always busy, so that a newcomer sees a living system.

    texts ──► feeds ──► render_feed ──► answers ──► server    http://localhost:8765/
    stories   items     RSS, Atom,      ETag, 304,
              by number JSON Feed       a feed that breaks now and then
                files ──────────────► write_files ──────────► tickets/*.json, news/*.xml

Law: what is published is a function of (seed, feed, number), and the newest number is a function of
the clock. So nothing here has state, no thread is needed to publish, and a newsroom that is started
again goes on where it would be by now: readers that remember what they have seen find new items.

Every text is made here, from the word lists of `words.py`.

    with Newsroom(port=DEFAULT_PORT, or_any_port=True) as newsroom:
        newsroom.write_files(folder)
        script = script_for(script, newsroom.base_url)
"""

from headgate.demo.script import DEFAULT_PORT, script_for
from headgate.demo.server import Newsroom

__all__ = ["DEFAULT_PORT", "Newsroom", "script_for"]
