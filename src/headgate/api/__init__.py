"""What `import headgate` gives: the Python API, small enough to remember.

Entry points: `Matcher` (matcher.py), `match` on Spark DataFrames (spark.py), and `open`
(headgate.py), a catalog and its runs, on which the commands are built. Nothing below this room
imports it.

Files in reading order:

    matcher         `hg.Matcher`: named filters over one schema, matched together
    explanation     why an item matches a filter, or why not
    frames          frames of any library as Arrow batches; schemas and items
    filter_set      names and the living program, between two compactions
    filter_table    names and texts of filters in arrays; the file of a matcher
    spark           `hg.spark.match`: a matcher on Spark DataFrames, batch or streaming
    headgate        `hg.open`: a catalog, and the data folder of its runs, as one object
    arguments       durations and instants as people write them
    check_script    checking a script: statements, names, types, plans, operators
    planned_feed    a feed, registered or not, checked and planned
    suggest         what is there already for a new feed; what it shares with others
    plan_graph      the plan of a feed as a graph; which conditions others share
    value_rates     values and words of a source, and how often conditions hold
    preview         what a new feed has of the newest items, and what it nearly has
    limits          prices of feeds, suspended feeds, quotas
    explain         plans, programs and items, explained
    running         the options of a run, Spark's session, and the run as a context
    delivery        a delivery worker in this process
    deliveries      what became of a subscription's deliveries; sending again
    delivery_states  the same of many subscriptions at once
    receivers       secrets of webhooks; mails that readers confirm and end
    opml            lists of web feeds, imported and exported
    posting         events for sources that are registered `from post`
    check_run       everything about a run that can be checked before Spark starts
    stored_items    reading stored items
    source_health   which sources are broken, quiet by their own rhythm, or fine
    rejected_records  what of a source was rejected
    operating       how the run of a folder is, and what is wrong
    backup          copies of catalog and folder while a run goes on
    restore         a backup becomes a new catalog and folder
    backtest_child  the process of one backtest of the service
    why_stored      why an item of the store is in a feed, or why not
"""
