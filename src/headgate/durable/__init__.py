"""What survives: files that are whole or not there, and databases with one writer."""
