"""Hostile inputs, made from seeds: what the benchmark `hostile` and its test throw at each door.

door        what a door is: seeds, words, bombs, and how an input enters
doors       the doors for sources and statements, and the table of all
code_doors  the doors for stylesheets and patterns
frame_doors the doors for snapshot files, ports and the pipes of child processes
seeds       valid inputs, from which others are made
inputs      input number n of a door: a bomb, or a seed that was changed several times
worker      enters a range of inputs in a process of its own, and reports on each
"""
