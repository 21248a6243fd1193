"""Networks that exist in a simulation only, for benchmarks of them."""
