"""Optimisers: what is decided between a plan and the program. One algorithm, one file.

    cover            which filters need not be forwarded, as others cover them      mbd.txt §4
    merge            one filter in place of several                                 mbd.txt §5
    routing_table    both, kept up to date as filters come and go
"""
