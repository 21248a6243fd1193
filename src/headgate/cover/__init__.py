"""Covering, merging and the routing table of content-based routing ([MBD]).

A broker forwards its subscriptions' filters to its neighbours, so that they send only items that
match one of them. Covering leaves out filters that another one implies; merging replaces several
filters by one. Entry points: `RoutingTable` (routing_table), `merge_perfect` and `merge_imperfect`.

    routing_table           which filters are forwarded as filters come and go     [MBD §4, §5.1]

    forest_cover            covering in batches: the roots, in levels of forests   [MBD §4.2, §4.3]
    describe_filter         the values that a filter allows, place by place
    describe_values         dependencies between places: parts of timestamps, words, links
    cubes                   descriptions as rows of integers                       [MBD §3.1]
    scan_index              an index of cubes that is scanned
    forest_index            an index of cubes as a forest                          [MBD §3.2]
    forest_batch_kernels    its hot loops, for a batch of new cubes
    forest_single_kernels   its hot loops, for a single new cube

    merge_perfect           one filter that matches exactly what several match     [MBD §5.2]
    merge_imperfect         … at the price of some false positives                 [MBD §5.3, §5.4]
    conditions              conjunctions as sets of numbered conditions
    value_sets              sets of values at a place, from atoms and back
    merge_costs             the merger of a pair, and the probability of its false positives
    cells                   probabilities of conditions: from statistics or a sample
    probability             how probable it is that an item satisfies a filter
"""
