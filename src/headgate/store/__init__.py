"""What a run keeps in files: where it lies, and how items become rows. No Spark, no DuckDB.

folder      the folder of a run: what lies where
columns     items as columns, and back
files       the store: Parquet files of items with their feeds, by day
finished    which batches are done with, so that their files stay as they are

The pipeline writes it (pipeline/), the commands read it (serve/).
"""
