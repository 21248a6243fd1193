"""Plans: statements → stream algebra → normal form ([RoSeS §3, §4]).

The plan of a feed is an expression of the stream algebra over sources. Feeds over feeds are
composed, and every plan is rewritten to a normal form in which filters stand directly on sources.
Entry points: `translate.compose_all`, `normalize.normalize_all`, `leaves.leaves_by_source`,
`explain.explain`, `why.why`.

    algebra           the nodes of plans: sources, filters, unions, windows, joins, matches
    translate         statements → plans over sources; feeds over feeds are composed
    variable_scopes   which conjuncts share ?variables, so that only whole scopes move
    cnf               conjunctive normal form of filters, with bounded growth
    rules             the rewrite rules and their order
    normalize         plans → the normal form; limits of size
    leaves            for each source the filters on its items, and the feeds that use them
    split_payload     a selection over a table with payloads as a join of two halves
    relate            whether a feed surely has the same items as another, more, or fewer
    price             what a feed will cost: CPU, memory, items a day; what would be cheaper
    plan_text         plans as text and as JSON
    explain           `explain`: a feed's plan as written and in normal form
    why               why an item is in a feed, or why not
    smallest_edit     the smallest edit after which a feed has an item
"""
