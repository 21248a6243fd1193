"""Statements → algebra → composition → normal form, and `explain` of it (roses.txt §3, §4)."""
