"""The rewrite rules, one in each file. The order in which they are tried is in plan/normalize.py.

A rule is a function `Plan -> Plan | None` that looks at the root of a plan only and answers with an
equivalent plan, or with None where it does not fire. It may rely on nothing else; the tests apply
each rule alone, at every node of generated plans, and execute both sides.
"""
