"""The language: from text to statements and back.

A statement is parsed to frozen data, checked against the definitions that it uses, and written
back as canonical text. Every error names a line, a column, what was expected, and the nearest
known name. Entry points: `parse.parse_script`, `check.check`, `unparse.unparse`. This page imports
nothing: Spark's workers use statements and schemas, and do not need the parser.

    statements      the statements, as frozen dataclasses
    grammar.lark    the grammar
    parse           text -> statements
    script          cuts a script into statements; limits of size and nesting
    shapes          parses each shape of statement once and replays its steps for the others
    literals        what single tokens mean: names, constants, units, fixed vocabularies
    names           names that know their line and column
    build           grammar rules -> statements and tree patterns
    build_filters   grammar rules -> filters
    syntax_errors   error messages for text that the grammar does not accept
    check           checks a statement against the definitions that it uses
    check_feed      checks `create feed`: sources, variables, joins, conditions
    schemas         the schemas of sources, feeds and clauses
    type_filter     checks attributes and types of a filter and converts its constants
    costs           what the parts of a statement add to the CPU time of an item
    unparse         statements -> canonical text
    rename          statements with other names of definitions
"""
