"""What we compare ourselves with, on the same workloads and in the same run."""
