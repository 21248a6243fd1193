"""The pipeline on Spark: what plans become, and how items go through them (DESIGN.md §6).

control   planner, snapshot, source_plan     from the catalog to files that workers map
data      sources/, batch_stage, match_stage  what workers do with a micro-batch
          run_batch, journal, deliveries, materialise   what the driver does with it
          join_runner, join_progress, joined            window joins, behind the store
run       run, queries, groups, warm, status, meters, metrics
start     session, daemon, java_archive
jobs/     backtests and statistics, as batches over the store
"""
