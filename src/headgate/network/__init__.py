"""Configurations: which view serves which others, and where joins run ([Delta §2, §3]).

Every view can be computed from the source or by a rewriting (views/). A configuration chooses one
way for each view, such that no view and not the source feeds more than its limit. `configure` makes
a plan: a solver minimises utilisation, then LOGA lowers latency. `LivingConfiguration` keeps a
configuration while views are added and removed.

    configure               configure(): the solvers by name (SOLVERS: auto, ilp, lagrangian), LOGA
    configuration_problem   the input of a solver: rewritings, costs, limits; and its result
    configuration           one choice for each view: levels, loads, latencies, cost
    wide_area               sites, links, and where views are
    physical_plans          where joins run: the costs of each rewriting
    ilp                     solver: the integer program, by HiGHS
    lagrangian              solver: prices, repair and improvement, for large graphs
    lagrangian_dual         its prices and lower bound
    loga                    lower latency by replacing rewritings (Algorithm 2)
    feed_state              a configuration that is being changed, as arrays
    living_configuration    add and remove views, fail sites, replan
    flat_levels             run a configuration of flat feeds over batches of items
    explain_network         a configuration and its plan as text
    draw_network            a configuration as SVG
"""
