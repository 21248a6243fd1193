"""`headgate mcp`: tools for assistants, by the Model Context Protocol."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.catalog.principals import Scope
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    CatalogUrl,
    LogUrl,
    RunFolder,
    StateUrl,
)
from headgate.model.errors import NotAllowed

TOKEN_BYTES_MAX = 1_000
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="HEADGATE_TOKEN_FILE",
        help="The API token is its first line; without it, the owner of the catalog acts.",
    ),
]
ServiceUrl = Annotated[
    str, typer.Option(metavar="URL", help="A service (headgate serve), in place of a catalog.")
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Offer no tool that changes anything.")]


def mcp(
    token_file: TokenFile = None,
    url: ServiceUrl = "",
    read_only: ReadOnly = False,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    state: StateUrl = "",
) -> None:
    """Serve tools for an assistant on standard input and output, until the input ends.

    Assistants start it themselves; see docs/assistants.md. Tools whose scope the token lacks are
    not offered. Needs the library mcp: pip install 'headgate[mcp]'.

    [bold]headgate mcp --url https://news.example --token-file assistant.token[/bold]
    """
    try:
        import anyio  # noqa: PLC0415
        import mcp as _  # noqa: F401, PLC0415
    except ModuleNotFoundError:
        raise typer.BadParameter(
            "the library mcp is not installed: pip install 'headgate[mcp]'"
        ) from None
    if url and token_file is None:
        raise typer.BadParameter("a service needs a token", param_hint="--token-file")
    token = "" if token_file is None else _token_in(token_file)

    async def serve() -> None:
        from headgate.service.assistant_client import (  # noqa: PLC0415 - the web framework
            client_in_process,
            client_of_url,
        )
        from headgate.service.assistant_server import serve_stdio  # noqa: PLC0415

        async with AsyncExitStack() as stack:
            if url:
                client = client_of_url(url, token)
            else:
                headgate = stack.enter_context(
                    open_headgate(catalog, folder=folder, log=log, state=state)
                )
                client = client_in_process(headgate, token)
            api = await stack.enter_async_context(client)
            known = {Scope(each) for each in (await api.get("/v1/me"))["scopes"]}
            scopes = known & {Scope.READ} if read_only else known
            await serve_stdio(api, scopes)

    anyio.run(serve)


def _token_in(file: Path) -> str:
    with file.open("rb") as content:
        first, *_ = content.read(TOKEN_BYTES_MAX).split(b"\n")
    token = first.decode("ascii", "replace").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise NotAllowed(f"'{file}' has no token in its first line")
    return token
