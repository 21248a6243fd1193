"""Reading feeds from a hostile Internet, politely: fetch, parse, identify, and when to come again.

    refresh ──► fetch ──► parse_feed ──► identify ──► items ──► inbox
    which feed   bytes     entries        what is new            numbered, on the disk
    is due

Nothing here knows Spark. What is remembered of a feed is a value that goes in and comes out
(`Seen`, `FeedState`); `acquirer.py` runs all of it in threads, and `inbox.py` alone keeps anything.
Every limit is in `limits.py`.
"""
