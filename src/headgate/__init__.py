"""Content-based publish/subscribe for many standing queries that share their work."""

__version__ = "0.1.0"
