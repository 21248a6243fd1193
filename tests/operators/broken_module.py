"""Importing it raises."""

VALUE = 1 // 0
