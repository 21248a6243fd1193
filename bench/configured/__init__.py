"""Configurations of networks of views, for several benchmarks: their costs, limits and rows."""
