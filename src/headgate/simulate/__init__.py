"""Simulators of networks: the content-driven network, CN*, and a wide area of views.

They answer what a network would cost before it is built (`headgate simulate`, sizing.py), and
reproduce the network experiments of [Select-Joins §2.1, §5, §6, Appendices A, G, H] and
[Delta §5.5]. All nodes live in one process; each step uses only what its node would know.

    sizing               the questions of `headgate simulate`: traffic, repositories, latency
    charts               bars and lines as SVG

The content-driven network:

    content_network      subscriptions at nodes, messages to all subscriptions in their regions
    zones                one box of the space of subscriptions for each node (CAN)
    filter_network       a tree of nodes with filters on its links (CBN)
    node_subscriptions   the subscriptions of each node, and its message dispatcher
    regions              regions of messages, and the test whether a region meets a box
    routing_trace        which node gets which message, from which node
    cn_star              payloads along a trace: once along each link, then their ids (CN*)
    recent_entries       least-recently-used maps: payload directories and repositories
    network_metrics      traffic, hops, stress, latency, last hop
    topology             a physical network with a power law, and distances in it
    join_workload        generated subscriptions and table changes
    join_simulation      the events of a workload over a network, scheme by scheme

The wide area:

    wan_simulator        a configuration of views, simulated event by event
"""
