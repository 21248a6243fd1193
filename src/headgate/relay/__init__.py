"""Relays: processes at sites that carry a configuration."""
