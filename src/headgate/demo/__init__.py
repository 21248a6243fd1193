"""The demo: a server on this machine that publishes invented feeds and files all the time.

`headgate demo` runs it together with the script newsroom.feeds, so that a new user sees items
arrive at once. Invariant: an item is a function of (seed, feed, number), and the newest number is a
function of the clock. The server therefore keeps no state, and after a restart it goes on where the
clock is: readers that remember what they have seen find new items.

    with Newsroom(port=DEFAULT_PORT, or_any_port=True) as newsroom:
        newsroom.write_files(folder)
        script = script_for(script, newsroom.base_url)

    stories ──► feeds ──► render_feed ──► responses ──► server    http://localhost:8765/
          └───► files ─────────────────────────────────────────►  tickets/*.json, news/*.xml

Files in reading order:

    stories         word lists, and the functions that write titles and texts
    rhythm          when item n is published, and which item is the newest
    feeds           the eight feeds and their items
    render_feed     a feed as RSS 2.0, RSS 1.0, Atom or JSON Feed
    responses       the response for a path: feeds with ETag and 304, pages, pictures
    files           tickets and news as files, and the thread that writes them
    server          `Newsroom`: the HTTP server; `script_for`
    __main__        the server alone, as a command
    newsroom.feeds  the script of the demo; IncludePhotos.xsl and Title.xsl are its stylesheets
"""

from headgate.demo.server import DEFAULT_PORT, Newsroom, script_for

__all__ = ["DEFAULT_PORT", "Newsroom", "script_for"]
