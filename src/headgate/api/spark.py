"""`hg.spark.match`: a matcher on Spark DataFrames, batch or streaming."""
