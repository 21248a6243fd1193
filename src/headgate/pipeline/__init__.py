"""The pipeline on Spark: from registered feeds to stored and delivered items.

A run plans what is registered, reads the sources with streaming queries, and matches each
micro-batch on the workers, which write items and an index of their feeds. A batch exists when it is
in the log. Stages behind it (materialised feeds, joins) read the log and append to it.

Entry points: `run.Run` with `run_context.RunSettings`, and the jobs in jobs/.

In reading order:

    run                  composes the stages of a run, and repeats their work in threads
    run_context          settings, counters, and the context that the stages share
    methods              the algorithms that can be chosen by name, and the choice as text

    planner              follows the catalog; publishes snapshots of all plans
    layer_builder        what is registered, and from feeds to a layer of a snapshot
    write_plans          the source plans of a layer, factorised, as files
    publish_plans        plan files for executors without a shared folder
    source_plan          the compiled filters of one source, and the feeds behind each
    snapshot             which source plans a batch uses: layers of feeds

    source_groups        sources that one streaming query can read together
    queries              the streaming queries, restarted when they fail
    batch_stage          a task of a micro-batch: match, write, summarise
    match_stage          Arrow batches of items in, the same items with their feeds out
    feed_costs           the CPU time of expensive atoms, by feed; atoms that nobody needs
    operator_stage       calls users' operators on a worker, in the chosen order
    run_batch            the driver's part of a micro-batch: name a snapshot, commit
    feed_budget          which feeds take too much and are suspended
    run_log              the log in the driver: who commits, who waits, how far stages have read
    records              records of tasks as Arrow schemas, DDL and rows

    materialise          materialised feeds: XSLT on workers
    delivery             where deliveries are made: a child process, or a thread
    window_join_runner   window joins and patterns, in a thread of the driver
    window_join_stage    the same on executors, as a stage of the log
    window_join_process  the program of a bucket of the window joins
    table_join_runner    table joins: change batches in, results to subscribers
    table_join_query     the stateful streaming query of the table joins
    table_join_stage     what a bucket does with its changes

    session              Spark sessions and their settings
    daemon               Spark's Python daemon, with modules loaded before it forks
    java_archive         a class data archive that makes the JVM start faster
    rehearsal            a small run that makes this archive and compiles the kernels
    spark_jars           the jars of Spark's Kafka connector
    warm_workers         keeps Spark's Python workers alive and their plans open
    latest_matches       the last matches, for the screen
    status               the state of a run, for display
    heartbeat            what a run says of itself in its folder, for other processes
    folder_status        what the folder, the log and the databases say, without the run
    metric_families      all of these as metrics of Prometheus
    log_format           logs as text, or as lines of JSON
    metrics              the HTTP server of a run that answers scrapes

    sources/             streaming sources: web feeds, files, Kafka, table changes
    jobs/                batch jobs over the store: backtests, statistics, feed networks
"""
