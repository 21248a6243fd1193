"""Hostile inputs, made from seeds: what the benchmark `hostile` and its test throw at each door.

door            what a door is: seeds, words, bombs, and how an input enters
doors           the table of all doors, by name; each is loaded when it is asked for
feed_door       feeds: RSS, Atom, JSON Feed
file_doors      files of a source: XML, JSON, CSV, Parquet
statement_doors lists of feeds (OPML) and statements
code_doors      stylesheets and patterns
snapshot_door   snapshot files of programs and source plans
metrics_door    the HTTP port of a run
relay_door      the port of a relay, and a supplier of one
child_door      the pipes of child processes
seeds           valid inputs, from which others are made
inputs          input number n of a door: a bomb, or a seed that was changed several times
worker          enters the inputs of a run in a process of its own, and reports on each
"""
