"""What every connection to a stranger needs, whichever room makes it.

deadline           one clock for all of it
checked_backend    to checked addresses only

Who may be connected to is judged by model/addresses.py; what a refusal means, the room says.
"""
