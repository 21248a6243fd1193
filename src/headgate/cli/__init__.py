"""The command line: `headgate COMMAND`.

The commands are thin: they read options, call the Python API (api/) and print the result as text
or, with `--json`, as JSON. The entry point is `main.main`; it imports the module of the given
command only.

    command                            file
    run                                run
    deliver                            deliver
    serve                              serve
    mcp                                mcp
    demo                               demo
    prepare                            prepare
    check, apply, drop                 scripts
    show                               show
    explain                            explain
    subscribe, renew, unsubscribe,
    rotate, confirm, pause             subscriptions
    deliveries, replay                 deliveries
    suspend, resume, quota             limits
    tenant, token, link, grant, audit  access
    post                               post
    tail, why, rejected                items
    stats, statistics                  stats
    status                             status
    settings                           settings
    backup, restore                    backup
    backtest                           backtest
    suggest, dependents, history,
    values, compare                    insight
    opml                               opml
    network plan, show, what-if        network
    network run                        network_run
    relay plan, publish, read, status  relay
    relay run, all                     relay_run
    simulate content, cn-star, wan     simulate
    bench                              bench

Files in reading order:

    main            the table of commands, and the `headgate` command made from it
    options         options and arguments that several commands share
    settings        the settings file, and what holds of it
    output          printing of lines, tables, JSON and errors; exit codes
    scripts         check and apply a script, drop one definition
    show            list what is registered
    explain         plans of feeds, the program of a source, why an item matches
    subscriptions   subscribe, renew and unsubscribe; rotate secrets, confirm mails, pause
    deliveries      what became of a subscription's deliveries; send again
    limits          suspend feeds, resume feeds and subscriptions, set quotas
    access          tenants, API tokens, links to feeds, grants, the audit
    accounts        people who sign in by a browser
    run             run the pipeline until it is stopped
    run_display     the screen, the log line and the summary of a run
    deliver         a delivery worker
    serve           the HTTP service
    mcp             tools for assistants
    demo            run the pipeline on the feeds of headgate.demo
    prepare         make once what all runs use: compiled kernels, archived classes, jars
    post            give events to a source
    items           stored items: tail a feed, explain one item, list rejected input
    stats           totals of the store and the outbox; statistics for the optimisers
    status          whether all is well with a run, on one screen
    backup          copy catalog and folder of a run, and back
    backtest        evaluate a feed over the stored items before it is created
    insight         what is there already, what is behind a definition, its past; two feeds compared
    opml            import and export lists of feeds
    network         plan which feeds are computed from which others; show and change the plan
    network_views   the views, rewritings and costs that such a plan starts from
    network_run     run the planned configuration on files
    relay           commands around relays: the processes at the sites of a network
    relay_options   options that the relay commands share
    relay_status    request the status of all relays, and show it as a table
    relay_run       run the relay of one site, or of all sites
    simulate        simulators: size a network before it is built
    bench           run a benchmark of the source tree
"""
