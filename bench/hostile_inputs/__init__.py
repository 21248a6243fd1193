"""Hostile inputs, made from seeds: what the benchmark `hostile` and its test throw at each door.

doors       the table of doors: seeds, words, bombs, and how an input enters
seeds       valid inputs, from which others are made
inputs      input number n of a door: a bomb, or a seed that was changed several times
worker      enters a range of inputs in a process of its own, and reports on each
"""
