"""Reading feeds from a hostile Internet, politely: fetch, parse, identify, and when to come again.

    refresh ──► fetch ──► parse_feed ──► identify ──► items
    which feed   bytes     entries        what is new
    is due

Nothing here knows Spark, and nothing here has state of its own: what is remembered of a feed is a
value that goes in and comes out (`Seen`, `FeedState`). Every limit is in `limits.py`.
"""
