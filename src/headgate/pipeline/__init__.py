"""The pipeline on Spark: from registered feeds to stored and delivered items.

A run plans what is registered, reads the sources with streaming queries, matches each micro-batch
on the workers, stores the items and queues deliveries. Joins run behind the store, on finished
batches. Entry points: `run.Run` with `run_context.RunSettings`, and the jobs in jobs/.

In reading order:

    run                  composes the stages of a run, and repeats their work in threads
    run_context          settings, counters, and the context that the stages share
    methods              the algorithms that can be chosen by name, and the choice as text

    planner              follows the catalog; publishes snapshots of all plans
    layer_builder        what is registered, and from feeds to a layer of a snapshot
    write_plans          the source plans of a layer, factorised, as files
    source_plan          the compiled filters of one source, and the feeds behind each
    snapshot             which source plans a batch uses: layers of feeds

    source_groups        sources that one streaming query can read together
    queries              the streaming queries, restarted when they fail
    batch_stage          a task of a micro-batch: match, store, summarise
    match_stage          Arrow batches of items in, the same items with their feeds out
    operator_stage       calls users' operators on a worker, in the chosen order
    run_batch            the driver's part of a micro-batch, with materialised feeds
    journal              records of batches: which snapshot each uses, which are finished
    deliveries           from stored matches to rows of the outbox
    records              records of tasks as Arrow schemas, DDL and rows

    finished_files       files of finished batches that the joins have not read yet
    window_join_runner   window joins and patterns
    table_join_runner    table joins: change batches in, results to subscribers
    table_join_query     the stateful streaming query of the table joins
    table_join_stage     what a bucket does with its changes

    session              Spark sessions and their settings
    daemon               Spark's Python daemon, with modules loaded before it forks
    java_archive         a class data archive that makes the JVM start faster
    warm_workers         keeps Spark's Python workers alive and their plans open
    status               the state of a run, for display
    metrics              the same in the Prometheus text format

    sources/             streaming sources: web feeds, files, Kafka, table changes
    jobs/                batch jobs over the store: backtests, statistics, feed networks
"""
