"""`headgate serve`: the HTTP service, until it is stopped."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.cli.options import CATALOG_DEFAULT, CatalogUrl, PublicUrl
from headgate.cli.output import print_line
from headgate.model.errors import HeadgateError

ADDRESS_DEFAULT = "127.0.0.1:8080"
Listen = Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to listen.")]


def serve(
    address: Listen = ADDRESS_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    public_url: PublicUrl = "",
) -> None:
    """Serve the links in mails, by which readers confirm and end subscriptions.

    The run that sends the mails is given the same --public-url. Put a server with TLS in front of
    it that passes requests on.

    [bold]headgate serve --address 127.0.0.1:8080 --public-url https://news.example[/bold]
    """
    # Late: the web framework takes half a second to load.
    from headgate.deliver.settings import checked_public_url  # noqa: PLC0415
    from headgate.service import server  # noqa: PLC0415
    from headgate.service.app import make_app  # noqa: PLC0415

    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise typer.BadParameter("expected HOST:PORT", param_hint="--address")
    try:
        public = checked_public_url(public_url)
    except HeadgateError as error:
        raise typer.BadParameter(str(error), param_hint="--public-url") from None
    with open_headgate(catalog) as h, server.listen(host, int(port)) as listening:
        h.catalog.installation_key()  # where it is missing, no link could be read
        bound = listening.getsockname()[1]
        print_line(f"serving at http://{host}:{bound}")
        if not public:
            print_line("mails have no links: name this service by --public-url, for the run too")
        server.serve(make_app(h), listening)
