"""Optimisers: what is decided between a plan and the program. One algorithm, one file.

routing_table      which filters are forwarded as filters come and go          [MBD §4, §5]
attribute_order    the order of attributes on the paths of a forest            §3.2

cover              covering in batches, on the forest                          §4.2, §4.3
cover_two_pass     two separate passes, for comparison                         §2, §6
cover_naive        a linear scan with model.implies: the judge
    cover_knowledge, _values      what a filter says, place by place
    cover_cubes, _labels          … as integers
    cover_part, _scan, _roots     forests and lists of what is not covered
    cover_*kernels                the hot loops

factorize          the filter plan of a source, chosen by its cost             [RoSeS §4.3]
factorize_sta      a Steiner tree by density, for comparison                   Appendix A
factorize_vca      Algorithm 1 on the subsumption graph, for comparison        §5
factorize_vcb      … for a million filters, without the graph                  §5, Fig. 6
factorize_prefix   sorted prefixes
living_factors     … as filters come and go                                    §8
    factor_input, _tree, _text    filters as sets of clauses, the tree, its text
    factor_cost, _selectivity     what a tree costs; how often a conjunction is true
    subsumption, _graph           which clauses imply which, and which predicates
    candidates                    predicates that subsume at least two filters
    living_tree, postings         a tree that changes, and who has a clause
    time_budget                   how long an optimiser may take
    factor_, candidate_, vcb_kernels

order_engine       operators: items, their candidate clauses and an order in, matches out
order_naive, order_sequential, order_sub_order     [Operators §5.2, §4.1, §4.2]
order_adaptive     at every step what decides most for its cost: ours
    order_clauses, _predicates    filters as clauses over distinct predicates
    order_value_tests, _joint     constraints: on one answer, on several
    order_table, _lanes           subscriptions × predicates; the part of it that an item has
    order_answers, _arrangement   what is asked and answered; what an order is
    order_estimates, _explain     selectivities and costs as they are learned; the order as text
    order_*kernels                the hot loops

merge_perfect      one filter that matches exactly what several match          §5.2
merge_imperfect    … at the price of some items in vain, up to a threshold     §5.3, §5.4
    merger                        what a merger is
    conditions, place_values      filters as conditions on places, and back
    leave_one_out, neighbours     which ones can be merged
    statistics, cells, boxes      how probable a filter is
    pair_weights, *kernels        what merging two would cost
"""
