"""What every connection to a stranger needs, whichever room makes it: one clock for all of it.

Who may be connected to is judged by model/addresses.py; what a refusal means, the room says.
"""
