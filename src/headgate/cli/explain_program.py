"""`headgate explain --program SOURCE`: all filters on a source, compiled together."""

from __future__ import annotations

import typer

from headgate.cli.output import print_json, print_text
from headgate.language.schemas import Definitions, schemas_of
from headgate.language.unparse import unparse_filter
from headgate.match.program import atoms_of, compile_program
from headgate.match.program_text import counts_text, program_text
from headgate.model.errors import alternatives
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all, feed_names


def print_program(source: str, definitions: Definitions, *, as_json: bool) -> None:
    asked = leaves_by_source(normalize_all(compose_all(feed_names(definitions), definitions)))
    if source not in asked:
        known = f"; they read {alternatives(sorted(asked))}" if asked else ""
        raise typer.BadParameter(f"no feed reads '{source}'{known}")
    filters, schema = list(asked[source]), next(iter(schemas_of(source, definitions)))
    program = compile_program(filters, schema)
    names = [", ".join(users.names) for users in asked[source].values()]
    text = program_text(program, [unparse_filter(each) for each in atoms_of(filters)], names)
    if as_json:
        print_json({"source": source, "counts": counts_text(program), "program": text.split("\n")})
    else:
        print_text(f"program of {source}: {counts_text(program)}\n\n{text}\n")
