"""`headgate demo`: start the server of headgate.demo, apply its script, run the pipeline, and serve
the console beside it."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from headgate.api.headgate import Headgate
from headgate.api.headgate import open as open_headgate
from headgate.api.running import MASTER_DEFAULT, RunOptions, starting_spark
from headgate.cli.output import print_line, stdout
from headgate.cli.run import (
    Master,
    Metrics,
    Until,
    apply_once,
    run_until_stopped,
    seconds_option,
)
from headgate.cli.scripts import read_statements, read_text
from headgate.cli.serve import ADDRESS_DEFAULT, serving_beside
from headgate.pipeline.log_format import LogFormat, configure_logs

DEMO_SCRIPT = Path(__file__).parents[1] / "demo" / "newsroom.feeds"
"""Part of the package, with its stylesheets. examples/ in the source tree links to it."""
MARKER_FILE = "made-by-headgate-demo"
WITHOUT_TERMINAL_S = 60.0
"""The length of a demo whose output is not a terminal."""
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
LATENESS_S = 5.0
"""Demo items arrive within seconds of their time, so joins need not wait for a minute."""
FAST_FETCHING = {
    "allow": "loopback",
    "budget": "6000",  # fetches per minute
    "interval_min_s": "2",
    "interval_max_s": "4",
    "backoff_s": "4",
    "host_delay_s": "0.05",
}
"""Options of the feed source: poll one local server every few seconds."""

Script = Annotated[
    Path,
    typer.Argument(
        metavar="[SCRIPT]", help="The script to apply.", show_default="the bundled newsroom.feeds"
    ),
]
DemoFolder = Annotated[
    Path, typer.Option("--folder", metavar="FOLDER", help="Replaced at each start.")
]
Serve = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT", help="Where the console is, or 'off'.", show_default=ADDRESS_DEFAULT
    ),
]
Browser = Annotated[bool, typer.Option(help="Open the console in a browser, on a terminal.")]


def demo(
    script: Script = DEMO_SCRIPT,
    folder: DemoFolder = Path("headgate-demo"),
    master: Master = MASTER_DEFAULT,
    metrics: Metrics = "off",
    serve: Serve = "",
    browser: Browser = True,
    seconds: Until = "",
) -> None:
    """Run the example script on feeds that a server on this machine publishes, and show it in the
    console.

    Without a terminal it runs for a minute, prints a summary and ends.
    """
    from headgate.demo import DEFAULT_PORT, Newsroom, script_for  # noqa: PLC0415

    configure_logs()
    length_s = seconds_option(seconds)
    if length_s is None and not stdout.is_terminal:
        length_s = WITHOUT_TERMINAL_S
    text = read_text(script)
    _replace_folder(folder)
    with (
        starting_spark(master) as session,
        Newsroom(port=DEFAULT_PORT, or_any_port=True) as newsroom,
        open_headgate(str(folder / "catalog.db"), folder=folder / "data") as h,
    ):
        print_line(f"the newsroom publishes at {newsroom.base_url}")
        newsroom.write_files(folder / "files")
        text = script_for(text, newsroom.base_url)
        statements = read_statements(text, file=script, as_json=False)
        apply_once(h, statements, text=text, file=script)
        options = RunOptions(
            folder=folder / "data",
            output=folder / "feeds",
            stylesheets=script.parent,
            data=folder / "files",
            lateness_s=LATENESS_S,
            sources=FAST_FETCHING,
        )
        catalog, address = str(folder / "catalog.db"), _address(serve)
        with serving_beside(address, catalog, options, LogFormat.TEXT) as url:
            notice = _invite(h, url, browser=browser) if url else ""
            run_until_stopped(h, session, options, metrics=metrics, seconds=length_s, notice=notice)
    _print_outputs(folder)


def _address(serve: str) -> str:
    """Where to listen: as asked for, else the usual port, or any other if that is taken."""
    if serve:
        return "" if serve == "off" else serve
    host, _, port = ADDRESS_DEFAULT.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            return f"{host}:0"
    return ADDRESS_DEFAULT


def _invite(h: Headgate, url: str, *, browser: bool) -> str:
    """Say where the console is, with a link that signs in once; a terminal may open it."""
    port = url.rpartition(":")[2]
    link = h.catalog.accounts.make_link(h.catalog.accounts.owner())
    address = f"http://localhost:{port}/enter/{link}"
    text = f"the console: {address}"
    print_line(text)
    if browser and sys.stdout.isatty() and _has_screen():
        webbrowser.open(address)
    return text


def _has_screen() -> bool:
    """Whether a browser would be seen: one in the terminal would fight with our screen."""
    return sys.platform == "darwin" or any(os.environ.get(each) for each in DISPLAYS)


def _replace_folder(folder: Path) -> None:
    """Empty the folder if an earlier demo made it; refuse any other folder that is not empty."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARKER_FILE).exists():
            raise typer.BadParameter(
                f"'{folder}' is not empty and not from a demo; name another folder",
                param_hint="--folder",
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER_FILE).touch()


def _print_outputs(folder: Path) -> None:
    for path in sorted((folder / "feeds").glob("*")):
        if not path.name.startswith("."):
            print_line(f"wrote {path} ({path.stat().st_size:,} bytes)")
