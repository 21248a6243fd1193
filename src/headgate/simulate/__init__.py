"""Simulators: the content-driven network, CN*, a wide area."""
