"""The content-driven network, as a simulator ([Select-Joins §2.1, §5, §6, Appendices A, G, H]).

content_network      subscriptions at nodes, messages to all that their regions hold
    zones                boxes of the space of subscriptions, one for each node (CAN)
    region_routing       the tree over all zones that a region meets
    filter_routing       a tree of nodes with filters on its links, in place of zones (CBN)
    node_subscriptions   what lives at each node, and its message dispatcher
    arrivals             the trace: which node gets which message, from whom
regions              from messages of a select-join to what the network sees of them
cn_star              payloads along a trace: once along each link, then their ids (CN*)
topology             a physical network with a power law, and distances in it
network_metrics      traffic, hops, stress, latency, last hop

*_kernels            the hot loops: region, zone, dispatch, filter, payload, recent

Views that serve each other ([Delta §2, §3, §5.5]):

configuration_problem  rewritings, costs and limits
    wide_area, physical_plans   sites and links, and what each rewriting uses and takes there
configuration          one choice for each view; levels, loads, latencies
configure              choosing one: configure_ilp, configure_lagrangian, then loga
    lagrangian_dual      prices and the bound; configure_brute is the judge
    feed_state           the arrays of a configuration that is being changed
living_configuration   views that come and go, and sites that fail
wan_simulator          a configuration at work
flat_levels            … and at one place, of flat feeds; views/run_levels.py has tree patterns
explain_network, draw_network   as text and as a picture

A configuration at work in real processes ([Delta §5.5]):

relay                  the process at a site
    relay_core             what its connections share: state, work, status
    relay_state            the pure part: what is here, what to compute, send and acknowledge
        relay_streams, relay_window   the marks of a view, and how much is held
    relay_recipes          how views are computed: from the document, by a rewriting, as a copy
    relay_news             who waits for a site that is gone
    relay_follow, relay_serve   the side that dials, and the side that listens
    relay_source, relay_documents   the source, and its documents on disk
    relay_shelf            what a site keeps for its subscribers
relay_deployment       a configuration, cut by site; relay_file, relay_patterns: as a file
relay_wire, relay_frames, tuple_frames   connections, frames, and tuples as bytes
relay_client           publishing documents, and asking how relays do
"""
