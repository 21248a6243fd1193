"""Select-joins: subscriptions that join tables, with a range per attribute ([Select-Joins]).

A feed such as `from Stocks as $s join Reviews as $r on Symbol where $s[PER > 45]` is a select-join.
All joins of the same tables on the same attributes form a group and are served together. Changes of
tables go in; messages for clients, which hold the rows of their join, and result rows as items come
out. Nothing here imports Spark: pipeline/ runs it.

Entry points: `join_groups.split_plan` (which joins a plan has), `group_joins.write_joins` (their
subscriptions as files), `bucket.Bucket` (the rows of one partition between two micro-batches),
`group_output.GroupOutput` (messages and results of a batch), `server.SelectJoinServer` (the
algorithm alone), `clients` (the receiving side), `explain` (text for `headgate explain`).

Schemes are chosen by name: the table is in `schemes`. A run can use Ref-SJ-Sub, -Tup, -Clu and
-Clu+ (the default), which describe the affected subscriptions by regions; the other five are for
comparison in `headgate bench joins`, and `schemes` says why.

Words, as in the paper where it has one:

    tuple, row       a version of a row of a table; changing a row makes a new version
    subscription     a box: one closed range for each selection attribute of the joined tables
    semijoin R^S     the rows of R that join with a row of S; both selected by the subscription
    affected         the change alters the subscription's semijoins
    exposure         a new tuple of R exposes a row of S: the row joins with a selected row of R for
                     the first time, so it enters the semijoin S^R
    message          one row that enters or leaves semijoins, and the region it is for
    region           a part of the space of subscriptions, stated on their bounds only, so that a
                     network that knows no joins can route the message
    skyline          the pairs of bounds in a region: the least list that describes who is affected
    stabbing set     a cluster of subscriptions whose ranges share a point, its anchor
    scheme           the content of messages and how their recipients are described; nine by name
    repository       payloads that a node of a CN* network caches; in simulate/, not here
    client           the receiver: holds semijoins and joins them
    group            the joins of the same tables on the same attributes
    bucket           a hash partition of a group's rows by join value
    change batch     what one micro-batch processes: files of changes, snapshot, instant
    result group     a group that makes joined rows for delivery as items, from any number of tables

Files, in reading order.

Subscriptions:
    schemes               the nine schemes by name
    boxes                 from plans to ranges; subscriptions as boxes
    box_tree              all subscriptions in one tree
    box_tree_kernels      building the tree, and queries to it
    stabbing_sets         clusters of subscriptions and their anchors
    subscription_index    trees, anchors and scheme together, as the kernels use them
    stored_boxes          the subscriptions of a group in a file that workers map
    join_graph            tables, edges, signatures and forms of semijoins
    join_groups           groups of joins, and which joins a plan has
    decompose             which semijoins represent a join of many tables, by cost
    group_joins           the groups of a join; payloads as tables of their own; files of a layer

Rows and changes:
    key_bytes             keys and join values as bytes
    byte_codes            small numbers for byte strings
    row_format            rows between Arrow columns and bytes
    row_format_kernels    its loops
    row_changes           kinds of changes by word: put, delete
    changes               changes of rows as objects and as columns
    table_rows            the rows of joined tables, by key and by join value
    table_kernels         their index by join value, and how changes alter rows
    change_pieces         changes cut by bucket, packed, and combined again
    change_batches        files that fix the input of each micro-batch
    spark_partition_keys  keys that Spark spreads over partitions one by one

From changes to messages and results:
    message_buffer        messages as arrays
    messages              messages as objects
    skylines              regions: which subscriptions a tuple affects
    change_messages       messages of a join of two tables
    semijoin_messages     messages of one semijoin of a larger join
    server                rows, subscriptions and scheme together
    recipients            which subscriptions are in a region
    result_join           joined rows of many tables
    results               joined rows as items, and the filters that ranges cannot express
    message_files         messages as Parquet
    group_output          messages and results of one group and batch
    clients               clients of two-way and multi-way joins

State and text:
    array_blob            arrays as bytes
    rows_state            rows as bytes, and back
    bucket                the rows of one bucket between micro-batches
    explain               groups and joins as text
"""
