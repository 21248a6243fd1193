"""Delivery: from matched items to feed files, mails, webhook calls and console lines.

The pipeline puts deliveries into the outbox, one transaction per batch; `Deliverer.run_due` sends
what is due, again and again. Files are exact; mails and webhooks are sent at least once, under an
id that is the same at every attempt. A receiver that is slow or away holds up only itself.

    put ──► outbox ──► schedule ──► deliverer ──► run_subscription ──► output_*
            durable     who is due   workers       transform, render

    records             subscriptions, deliveries, messages
    outbox              the queue of deliveries and their states
    outbox_tables       its tables; contents of items; pruning
    cross_feed_dedup    the same news from two sources is delivered once
    item_deliveries     what became of an item's deliveries, for other processes
    schedule            when a subscription is due: periods, retries, pauses
    deliverer           runs what is due, in a few threads per receiver
    run_subscription    one run of one subscription, and the report
    settings            what the operator decides
    errors              the errors of this room, and what they say about retries
    entry               an item as the renderers need it, cleaned once
    clean_text          texts of strangers for XML, HTML, headers and links
    render              Atom, RSS, JSON Feed, HTML, text
    item_encoding       items as JSON for the outbox, as XML for stylesheets
    output_file         files and console lines
    output_mail         digests by SMTP
    output_webhook      signed calls
    safe_folder         files below a folder, with names from strangers
    transform           XSLT on items, in a child process
    transform_child     that process; a script that imports nothing of ours
"""
