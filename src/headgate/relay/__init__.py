"""Relays: processes at sites that run a configuration of views over documents ([Delta §5.5]).

A relay receives views from other sites, computes its own from them, stores them for its subscribers
and forwards them. `deployment_of` cuts a plan by site; `run_relay` runs one site; `Publisher` hands
documents to the source.

    deployment        which site computes, receives and sends what
    deployment_file   the same as a file
    relay             the process at a site
    core              its state, computation and status
    state             what is here, what to compute, send and acknowledge (no I/O)
    streams           the marks of one view's stream, and the window of held documents
    recipes           how views are computed: from the document, by a rewriting, as a copy
    outage_notices    which views wait for a site that cannot be reached
    connections       the dialling side and the listening side
    wire              the protocol: frames and authentication
    tuple_frames      tuples of a view as bytes
    source            the source and its documents on disk
    received_store    what a site has received for its subscribers
    client            publishing documents, reading status
"""
