"""The matcher: all filters on one source compiled into one program that evaluates batches of items.

A program answers each distinct atom once for a batch, as a row of bits, and combines the rows along
a forest of shared conjunctions ([MBD §3]). Programs are files that all workers map into memory.
Entry points: `program.compile_program()`, `matcher.ProgramMatcher`, `living.LivingProgram` for
filters that change. The room knows neither Spark nor the language.

In reading order:

    batch               a batch of items as columns: the input
    item_columns        items as Arrow columns, the form in which the pipeline passes them on
    conjunctions        filters as conjunctions of rows over distinct atoms
    program             the program: groups of atoms, derived rows, forest; compile, check, file
    bit_rows            rows of bits: words, derived rows, counters, transposition
    forest              conjunctions as paths with shared beginnings
    walks               kernels that walk over the forest
    matcher             matching a batch: counts, lists by item, bitmaps by subscription
    row_users           which subscriptions use an expensive atom
    living              a program that subscriptions are added to and removed from
    explain             the program as text

    ordered_atoms       =, <, in, between, is present
    ordered_kernels     their kernels
    ranges              comparisons as ranges between cuts
    texts               texts as arrays; a text column and its forms
    characters          what is known of each character: how it folds, what words it is in
    fold_kernels        kernels that fold texts
    text_kernels        kernels over bytes: words, sorted texts
    vocabulary          words as numbers; hash tables
    word_atoms          contains, phrases and similar: one reading for all
    phrase_atoms        contains phrase, by an automaton
    similar_atoms       similar, by an index with bounds
    prefix_atoms        starts with
    link_atoms          references, extends, shares-link
    link_forms          links as bytes whose order and prefixes answer link atoms
    pattern_atoms       matches, by sets of re2

    array_file          named arrays in one immutable, mapped, hashed file
    array_file_layout   the layout of that file, and its checksum
    dataclass_codec     dataclasses of arrays in such files
    bounds              checks of stored arrays before kernels use them
"""
