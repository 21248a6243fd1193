"""`headgate backup` and `headgate restore`: the catalog and the folder of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.api.backup import BackupManifest, back_up
from headgate.api.restore import restore as restore_backup
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    CatalogUrl,
    LogUrl,
    RunFolder,
    local_folder,
)
from headgate.cli.output import print_line, size_text, stderr

NewFolder = Annotated[Path, typer.Argument(metavar="TARGET", help="A new folder for the backup.")]
BackupFolder = Annotated[Path, typer.Argument(metavar="TARGET", help="The folder of the backup.")]


def backup(
    target: NewFolder,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
) -> None:
    """Copy catalog, log and all other state of a run into a new folder, while the run goes on."""
    _show("backed up", back_up(catalog, local_folder(folder), target, log=log))


def restore(
    target: BackupFolder, catalog: CatalogUrl = CATALOG_DEFAULT, folder: RunFolder = FOLDER_DEFAULT
) -> None:
    """Check a backup, and copy it to a new catalog and a new folder.

    The next run goes on where the backup ends. Never run both the old folder and the restored one:
    both would deliver.
    """
    _show("restored", restore_backup(target, catalog, local_folder(folder)))


def _show(what: str, manifest: BackupManifest) -> None:
    count, size = len(manifest.files), size_text(manifest.bytes)
    print_line(f"{what} {manifest.position:,} positions of the log: {count:,} files, {size}")
    for note in manifest.notes:
        stderr.print(f"note: {note}", markup=False, highlight=False)
