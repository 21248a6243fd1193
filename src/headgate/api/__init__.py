"""What `import headgate` gives: the Python API, small enough to remember.

Entry points: `Matcher` (matcher.py) and `match` on Spark DataFrames (spark.py). Everything here is
built on the rooms below it; nothing below imports it.

Files in reading order:

    matcher         `hg.Matcher`: named filters over one schema, matched together
    explanation     why an item matches a filter, or why not
    frames          frames of any library as Arrow batches; schemas and items
    filter_set      names and the living program, between two compactions
    filter_table    names and texts of filters in arrays; the file of a matcher
    spark           `hg.spark.match`: a matcher on Spark DataFrames, batch or streaming
    why_stored      why an item of the store is in a feed, or why not
"""
