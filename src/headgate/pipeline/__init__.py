"""The pipeline on Spark: what plans become, and how items go through them (DESIGN.md §6).

source_plan    all filters on a source in one program, and the feeds behind each
session        a Spark session, set up for small batches and Python workers
match_stage    items in, items with the feeds that have them out: Arrow batches on executors
"""
