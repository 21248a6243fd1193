"""How the tables came to be, step by step; the last step equals tables.py."""
