"""The program: all filters on one source, compiled together. No Spark, no parser."""
