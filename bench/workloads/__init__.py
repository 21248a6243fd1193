"""Workloads that benchmarks share. Frozen: never edited, only added."""
