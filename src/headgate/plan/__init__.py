"""Statements → algebra → composition → normal form, and `explain` of it ([RoSeS §3, §4])."""
