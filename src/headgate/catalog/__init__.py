"""The catalog: what is registered, in SQLite or PostgreSQL.

It stores the definitions of sources, feeds and operators, subscriptions, advertisements, statistics
and the list of snapshots. A script is applied in one transaction, and every transaction increments
the version. Entry point: `Catalog`.

    catalog        `Catalog`: all methods, and which of them write
    tables         the tables of the database
    definitions    what a name can stand for; the registered statements by name
    apply          applies a script: the order of its statements, then each of them
    dependencies   what a statement is built on; depth and size of composed feeds
    register       `register`, `create feed`, `advertise`, `drop`
    subscribe      `subscribe`, `renew`, `unsubscribe`; tickets
    limits         suspended feeds; quotas
    receivers      what receivers do: confirm and end mails by links; rotated secrets
    installation_key  the key that secrets and links are made with
    transaction    one writing transaction; the outcome of a statement
    queries        pages and lookups for readers
    delivery_catalog  what delivery reads of the catalog
    statistics     measured rates of sources and selectivities of atoms
    database       connections, transactions, errors, bulk insertion
    upgrade        creates or migrates the tables
    migrations     the revisions of the tables (Alembic)
"""
