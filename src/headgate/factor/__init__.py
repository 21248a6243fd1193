"""Factorising: find the conditions that the filters of a source share, and evaluate them once.

The filters of one source are sets of clauses. A method (by name) arranges them as a tree of shared
predicates, by the cost model of [RoSeS §4–5]; the tree decides the shape of the compiled program
and never its answers. Entry points: `factorize.factorize()`, the table `methods.METHODS`, and
`explain.factor_text()`.

In reading order:

    factorize           factorize(): from filters to a program in the shape of the cheapest plan
    methods             the table of methods by name: prefix, sta, vca, vcb, auto, …
    selectivity         the share of items that satisfy a conjunction, counted in a sample
    implications        which clauses imply which; subsumption of sets of clauses
    clause_sets         the distinct filters of a source as sets of clauses
    filter_tree         the tree of predicates that every method returns, and its cost
    prefix              sorted prefixes: filters share their common beginnings
    candidates          the predicates that subsume at least two filters
    vcb                 VCA with the Very Clever Border: for a million filters
    subsumption_graph   the graph of all candidates, for VCA and STA
    vca                 Algorithm 1 of the paper as printed
    sta                 a Steiner tree of the graph by density
    time_budget         how long a method may take
    explain             the chosen plan as text
"""
