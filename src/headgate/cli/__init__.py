"""The command line: one file per command, each named after it."""
