"""The HTTP service, `headgate serve`: the API under `/v1`, and the links in mails.

It calls `api/` and `catalog/`, always for a principal, and knows no tables. FastAPI and uvicorn are
imported by this room only, and this room only by `headgate serve`, since they take half a second to
load. Entry points: `app.make_app` and `server.serve`.

    app            the application: resources, errors, and headers of every answer
    middleware     known hosts, and headers of every answer
    caller         who makes a request: API tokens ──► principals
    rate_limits    how often requests may come
    idempotency    requests that come again under their key are done once
    problems       errors as problem documents
    statements     /v1/statements, /v1/check
    definitions    /v1/sources, /v1/feeds, /v1/operators
    items          items of a feed by position; posting events to a source
    cloud_events   CloudEvents as posts
    post_queue     small posts, checked and written in groups
    search         the newest items of a feed that have some words
    explanations   plan, price and suspension of a feed; why it would have an item
    why            why a feed has a stored item or not; which feeds have it
    edits          the smallest edit of a feed that would admit a stored item
    item_deliveries  what became of an item for each subscription
    statistics     /v1/stats: how many items feeds and sources have
    backtests      /v1/backtests: what a feed would have had
    comparisons    /v1/comparisons: whether two feeds would have had the same items
    suggestions    /v1/suggest: what is there already for a new feed, and what it adds to the bill
    previews       /v1/preview, /v1/plan: what a new feed has of the newest items; its plan
    source_status  how a source is, what it is made of, what of it was rejected; fetching it now
    source_states  /v1/source-states: all sources, broken and quiet ones first
    samples        samples of sources, kept for a moment
    values         values and words of a source, and how often conditions hold
    backtest_jobs  their processes: few at a time, ended in time
    opml           /v1/opml: lists of web feeds
    discovery      /v1/discover: the feeds that a site offers
    site_discovery … fetched and looked at
    feed_items     items as answers have them
    live           /v1/feeds/…/live: items as they arrive
    live_hub       what arrives, read once for all clients that follow it
    subscriptions  /v1/subscriptions
    console        /, /river, …: the pages of the console, and its files
    sign_in        /sign-in, /enter/…, /session: sessions of browsers
    oidc           /sign-in/oidc: signing in by an OpenID provider
    oidc_states    what a browser has begun there
    oidc_provider  what the provider proves
    links          /v1/links: links under which a feed is read without an account
    feed_documents /f/…: what is behind a link, as Atom, RSS, JSON Feed, HTML
    reading        /v1/reading: what the caller reads
    reading_items  /v1/reading/items: the items, and searching them
    reading_live   /v1/reading/live: how many arrive
    reading_log    … out of the log and the catalog: pages, unread counts, items
    reading_windows  … in which ranges of the log
    reading_marks  marking items and feeds as read, starring
    reader_ids     ids of items and names of streams, as feed readers have them
    reader_entries items and followed feeds, as feed readers get them
    reader_caller  /accounts/ClientLogin: who makes a request with a feed reader
    reader_streams streams of the Google Reader API, as JSON and Atom
    google_reader  /reader/…: the Google Reader API
    google_reader_edits  … what it writes
    fever          /fever/: the Fever API
    document_content  what these documents have in them
    hub            /hub: who wants to be sent these documents (WebSub)
    hub_topic      their URLs, as the hub knows them
    hub_worker     what the hub does: looks what is new, confirms, sends
    hub_sender     what one subscription is sent
    hub_calls      what callbacks are told, and what they answer
    deliveries     what became of a subscription's deliveries, and sending again
    delivery_states  /v1/deliveries: all subscriptions, those that need somebody first
    receiver_tests a test call to the receiver of a subscription
    access         /v1/me, /v1/tokens, /v1/grants, /v1/audit, /v1/usage
    administration /v1/tenants, /v1/accounts: who there is, for the operator
    system         /v1/system: how the run is, for the operator
    health         /livez, /readyz
    metrics        /metrics, for Prometheus
    receivers      /confirm/… and /unsubscribe/…: the links in mails
    assistant_client  the API as the tools of assistants call it: by URL, or in this process
    assistant_tools   what an assistant can do, each tool with its scope
    assistant_server  the tools by the Model Context Protocol (`headgate mcp`)
    untrusted_text    text of others in the answers of tools: marked, cleaned, bounded
    log_access     the log as requests read it
    shared_looks   one look for many that ask for the same thing at a time
    run_watch      the folder of the run as /readyz and /metrics see it
    request_figures  counts of requests
    request_body   bodies within limits of size and time
    server         uvicorn with bounded connections, and without a log of paths
"""
