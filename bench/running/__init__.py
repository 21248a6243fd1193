"""What a whole run is measured by: the parts of the benchmark `pipeline` that need one."""
