"""The catalog: what is registered, in SQLite or PostgreSQL.

It stores the definitions of sources, feeds and operators, subscriptions, advertisements, statistics
and the list of snapshots. A script is applied in one transaction, and every transaction increments
the version. Entry point: `Catalog`.

    catalog        `Catalog`: everything, for who has the database
    tenant_catalog what a principal sees and may change of it
    tenants        tenants, under which names they see definitions, grants
    rights         what a tenant may do with a statement
    principals     who acts: principals, scopes, API tokens
    accounts       people who sign in, their tenants and sessions
    identities     which account somebody has at an OpenID provider
    feed_links     links under which a feed is read without an account
    reader_passwords  what feed readers on phones sign in with
    following      the feeds that somebody follows in a feed reader
    reading        which items somebody has read or starred
    hub_subscriptions  callbacks that are sent what is behind links (WebSub)
    kept_answers   answers by idempotency key, so that nothing is done twice
    audit          who did what
    tables         the tables of the database
    service_tables those of the service
    reader_tables  those of feed readers
    definitions    what a name can stand for; the registered statements by name
    past_definitions  what a name stood for at an instant
    dependents     what is behind a definition: feeds, subscriptions, tenants
    apply          applies a script: the order of its statements, then each of them
    dependencies   what a statement is built on; depth and size of composed feeds
    register       `register`, `create feed`, `advertise`, `drop`
    subscribe      `subscribe`, `renew`, `unsubscribe`; tickets
    subscription_calls  renewing, ending, pausing subscriptions by number
    limits         suspended feeds; quotas
    receivers      what receivers do: confirm and end mails by links; rotated secrets
    installation_key  the key that secrets and links are made with
    sealed         small secrets, encrypted and bound to their rows
    transaction    one writing transaction; the outcome of a statement
    queries        pages for readers
    lookups        what the pipeline and delivery look up, many keys at a time
    delivery_catalog  what delivery reads of the catalog
    statistics     measured rates of sources and selectivities of atoms
    database       connections, transactions, errors, bulk insertion
    row_security   PostgreSQL's own wall between tenants
    upgrade        creates or migrates the tables
    migrations     the revisions of the tables (Alembic)
"""
