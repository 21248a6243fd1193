"""Optimisers: what is decided between a plan and the program. One algorithm, one file.

routing_table      which filters are forwarded as filters come and go          mbd.txt §4, §5
attribute_order    the order of attributes on the paths of a forest            §3.2

cover              covering in batches, on the forest                          §4.2, §4.3
cover_two_pass     two separate passes, for comparison                         §2, §6
cover_naive        a linear scan with model.implies: the judge
    cover_knowledge, _values      what a filter says, place by place
    cover_cubes, _labels          … as integers
    cover_part, _scan, _roots     forests and lists of what is not covered
    cover_*kernels                the hot loops

merge_perfect      one filter that matches exactly what several match          §5.2
merge_imperfect    … at the price of some items in vain, up to a threshold     §5.3, §5.4
    merger                        what a merger is
    conditions, place_values      filters as conditions on places, and back
    leave_one_out, neighbours     which ones can be merged
    statistics, cells, boxes      how probable a filter is
    pair_weights, *kernels        what merging two would cost
"""
