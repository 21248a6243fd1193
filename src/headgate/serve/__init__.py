"""Reading the store with DuckDB: what the commands that look at it ask.

read_store     questions to the files of the store; a damaged one is told and left out
stored_rows    rows of the store, as items
wanted         whose items: a feed's or a source's
tail           the last items of a feed or source
find_item      an item by its id
deliveries     what became of an item's deliveries
stats          items, matches and sizes, by source, day and feed
sparkline      a row of numbers as a small picture
"""
