"""The options that the commands of `headgate relay` share, and the token that they need."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from headgate.model.errors import RelayError
from headgate.relay.wire import Secret

TOKEN_VARIABLE = "HEADGATE_RELAY_TOKEN"
NETWORK_DEFAULT = Path("network.json")
FOLDER_DEFAULT = Path("headgate-relays")

NetworkFile = Annotated[
    Path,
    typer.Option("--network", metavar="FILE", help="The network, as 'relay plan' has written it."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help=f"The file with the network's token, unless {TOKEN_VARIABLE} is set; by default "
        "next to the network's file.",
    ),
]
RelayFolder = Annotated[
    Path,
    typer.Option("--folder", metavar="FOLDER", help="The folder with the durable state of relays."),
]


def secret_of(network: Path, token_file: Path | None) -> Secret:
    """From the environment, else from the file."""
    if token := os.environ.get(TOKEN_VARIABLE):
        return Secret(token)
    path = token_file or token_path(network)
    try:
        return Secret(path.read_text(encoding="utf-8").strip())
    except OSError as error:
        raise RelayError(
            f"the token '{path}' cannot be read: {error.strerror}; set {TOKEN_VARIABLE}, or name "
            "it with --token-file"
        ) from None


def token_path(network: Path) -> Path:
    return network.with_suffix(".token")


def make_token(path: Path) -> bool:
    """A new token that only its owner can read, unless there is one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise RelayError(f"the token '{path}' cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    return True


def shelf_path(folder: Path, site: str) -> Path:
    return site_folder(folder, site) / "shelf.db"


def documents_path(folder: Path, site: str) -> Path:
    return site_folder(folder, site) / "documents.db"


def site_folder(folder: Path, site: str) -> Path:
    """A folder of its own for each site, whatever its name is."""
    plain = site.isascii() and site.replace("-", "").replace("_", "").isalnum()
    return folder / (site if plain else "site-" + site.encode().hex())
