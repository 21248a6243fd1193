"""Delivery: from the log to feed files, mails, webhook calls, Kafka records and console lines.

`DeliveryWorker.step`, again and again, follows the log: a delivery is a range of the log and not a
row. Subscriptions belong to 256 slots, each with a cursor; workers lease slots. Files are exact;
mails, calls and records are sent at least once, under an id that is the same at every attempt. A
receiver that is slow or away holds up only itself.

    log ──► due_items ──► delivery_worker ──► document_files ──► replace_files
            who gets it    rounds, cursors ──► message_jobs ──► output_*
                                          └──► catch_up: lag rows, retries

    records             subscriptions, messages, ids of messages
    delivery_worker     rounds over the log; leases; the report
    delivery_tables     slots, lag rows, retries, dead letters, sent messages
    delivery_database   the database of these; leases with epochs
    sent_rows           records of sent messages in SQLite
    held_slots          the slots of a worker and their rows in memory
    subscription_table  the subscriptions of a worker as arrays
    due_items           who gets what in a range of the log
    repeats             the same news from two sources is delivered once
    confirmations       readers of mails are asked before the first digest
    pauses              paused subscriptions keep their place
    step_report         what a step has done
    catch_up            lag rows, retries, and what became of a job
    build_jobs          jobs made of items; ids of messages
    message_jobs        threads that send, few for each receiver; stylesheets
    keyed_threads       threads that run jobs of many keys
    attempts            the last attempts of each subscription, for people
    send_message        one message by its output
    document_files      the documents of file outputs
    item_cache          items of the log, read and rendered once
    render_pieces       documents put together from rendered entries
    replace_files       many files replaced together
    delivery_status     counts, the state of one item and of one subscription, dead letters
    replay              dead letters and sent items are sent again
    delivery_config     what a worker process is told
    schedule            boundaries of periods
    settings            what the operator decides
    errors              the errors of this room, and what they say about retries
    entry               an item as the renderers need it, cleaned once
    clean_text          texts of strangers for XML, HTML, headers and links
    render              Atom, RSS, JSON Feed, HTML, text
    item_encoding       items as JSON, and as XML for stylesheets
    output_cloud_events  CloudEvents as the body of a call
    output_file         files and console lines
    output_mail         digests by SMTP
    output_webhook      signed calls
    receiver_test       a call without items, to see what a receiver answers
    http_calls          checked and bounded calls, by libcurl
    output_kafka        records of Kafka
    safe_folder         files below a folder, with names from strangers
    transform           XSLT on items, in a child process
    transform_child     that process; a script that imports nothing of ours
"""
