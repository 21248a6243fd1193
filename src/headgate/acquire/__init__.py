"""Sources: fetching feeds from the Internet, reading files while they are being written, and the
spool of posted events.

Every new document, part of a file or post is stored under a number before it is used. The numbers
are the offsets of the Spark sources (pipeline/sources/), and reading a number again gives the same
rows. Nothing here imports Spark. An error of one source does not affect the others.

**Invariant**: every byte that was read ends as an item, or as a rejection with its place and
reason. The parts of a file follow each other without a gap; each reader of a part accounts for its
bytes and records (rejected.py), and `read_part` checks the balance. Each entry of a feed is read,
or left out by one of the document's problems (`ParsedFeed.found`); each posted line is accepted or
named. What is lost of an accepted entry (the end of a long text) is recorded too.

**Feeds**: `Acquirer` runs all of it in threads; `Inbox` is the only state.

    refresh_queue ──► fetch ──► parse_feed ──► identify ──► items ──► inbox
    which feed         bytes     entries        the new ones           numbered, on disk
    is due

    acquirer          the threads that fetch, parse and store
    refresh_state     the state of one feed: its rate, its size, its failures
    refresh_queue     which feed to fetch next within a budget
    fetch_scheduler   the next feed, with one fetch per host at a time and a share per address
    address_shares    how many workers the hosts of one address may have
    backoff           the wait after a failure; also used by deliver/
    fetch             one conditional GET within limits
    connections       checked addresses, deadlines, limits per host
    http_response     headers, status, decompressed body
    limits            every limit on what comes in, in any format
    discover_feed     the feeds that an HTML page names
    parse_feed        any format as entries; JSON Feed
    parse_xml_feed    RSS and Atom, by feedparser
    entry_elements    which elements of an entry are read, and in what form
    scan_xml_feed     where the entries of an XML feed are, before feedparser reads them
    document_text     bytes as text: encodings, prolog, broken XML
    feed_entries      a parsed document, and how its entries are made
    plain_text        markup as plain text and as safe HTML
    sanitise          expensive markup, in a sandboxed process and within a budget of time
    identify          entries as items: ids, new versions, identity across feeds
    inbox             numbered documents until the pipeline has read them
    inbox_tables      its tables and records; the state of all feeds for other processes
    retry_requests    requests of other processes to fetch a feed now
    opml              lists of feeds, in and out

**Files**: `FileScanner` finds what is new and adds parts to the `FileLog`; tasks call `read_part`.

    scan_files ──► file_parts ──► file_log          then, on any worker:   read_part ──► rows
    new, complete   cut at lines    numbered                                 │
    files                                                                    └──► rejected

    source_list       which sources a query reads
    scan_files        which files exist, and which parts of them are new
    file_parts        how a file is cut into parts
    file_log          the numbers of parts, and how far each file was taken
    read_part         one part as rows; Parquet and XML documents
    read_json         lines and arrays of JSON
    read_csv          CSV
    item_rows         attributes as rows: ids and times
    rejected          records that could not be read, kept and counted

**Posted events**: `post_events` checks them and appends them to the `Spool`; tasks read its frames.

    spool             events on disk, by position
    spool_frames      the events of one post as bytes
    post              events checked line by line, and appended to the spool of their source
"""
