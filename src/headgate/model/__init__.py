"""The data model of the whole system: items, schemas, values, atoms, filters, errors. No I/O.

Atoms are predicates on one item, and filters are Boolean expressions over atoms. `evaluate` is the
oracle: it says whether an item satisfies a filter, and every optimiser is tested against it.
`implies` says whether one filter implies another. Entry points: `evaluate.matches`,
`implies.implies_filter`, and the classes of `atoms`, `filters`, `items`, `schema` and `errors`.

    values           types, kinds and values; which values are comparable
    text             how texts, words, links and XML are compared
    checked_xml      which XML is accepted as a value
    atoms            one predicate on one item each
    filters          Boolean expressions over atoms; which variables they bind
    schema           the attributes of a source's items; names in a join of tables
    items            items and their annotations; attributes from JSON
    duration         spans of time and counts of items
    tree_pattern     tree patterns over XML documents, and their oracle
    evaluate         the oracle: does an item satisfy a filter?
    widen            the smallest change of a filter that lets an item through
    implies          does a filter imply another?
    implies_normal   filters with every `not` moved to the atoms
    implies_values   the values that an atom allows for its attribute
    implies_text     what text and link atoms say about words and links
    intervals        sets of values as unions of intervals
    patterns         patterns of `matches`: limits, and what they cost
    addresses        which network addresses may be connected to
    receiver_secrets  secrets of webhooks, tokens of links in mails
    errors           every error that Headgate raises on purpose
"""
