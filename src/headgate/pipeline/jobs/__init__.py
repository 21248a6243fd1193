"""Jobs over the store, in batch: on Spark, or for small stores in this process, with the same code.

over_files          a job, its parts, and how it runs in this process
on_spark            … and on Spark
choose_runner       which of the two
stored_batches      the rows of stored files that a job looks at
backtest_question   a feed that may not be registered, planned beside what is
backtest_job        … what one part of the files says of it
replay_joins        … what joins would have made of what the leaves let through
backtest            what a feed would have had: all of it put together
atoms_to_measure    all atoms that feeds ask of sources
measure_job         … what one part of the files says of them
measure             how often atoms are true, and how much comes

and over the files of sources, for feeds that are computed from other feeds ([Delta]):

compile_network     a planned configuration as files that tasks map
    level_files         … how they lie in them
network_parts       the files of sources, dealt out to tasks
network_job         … what one task does: all levels, over some documents or items
    network_output      … and writes
run_network         a whole run, and its report
embedding_job       which views can be computed from which, by ranges of views
"""
