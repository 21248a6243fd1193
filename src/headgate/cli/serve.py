"""`headgate serve`: the HTTP service, until it is stopped.

`headgate run --serve` has it as a child: what it reads and writes is not the driver's work.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from headgate.api.headgate import open as open_headgate
from headgate.api.running import RunOptions
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    Allow,
    CatalogUrl,
    LogFormatOption,
    LogUrl,
    PublicUrl,
    RunFolder,
    StateUrl,
)
from headgate.cli.output import print_line, stderr
from headgate.cli.settings import FILE_VARIABLE
from headgate.model.addresses import allowed_networks
from headgate.model.errors import HeadgateError, InvalidValue, PipelineError
from headgate.pipeline.log_format import LogFormat, configure_logs
from headgate.sandbox.kernel import die_with_parent

if TYPE_CHECKING:
    from headgate.service.server import TlsFiles

ADDRESS_DEFAULT = "127.0.0.1:8080"
END_S = 10.0
AGAIN_S, AGAIN_MAX_S = 1.0, 60.0
Listen = Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to listen.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="NAME",
        envvar="HEADGATE_HOSTS",
        help="A name of this service; may be repeated. Requests for others are refused.",
    ),
]
OidcIssuer = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="HEADGATE_OIDC_ISSUER",
        help="An OpenID provider by which people sign in: https://login.example",
    ),
]
OidcClient = Annotated[
    str,
    typer.Option(
        metavar="ID", envvar="HEADGATE_OIDC_CLIENT", help="The id of this service at the provider."
    ),
]
OidcSecret = Annotated[
    str,
    typer.Option(
        metavar="SECRET",
        envvar="HEADGATE_OIDC_SECRET",
        help="Its secret; others can see a command line, so use the variable or the settings file.",
    ),
]
OidcDomains = Annotated[
    str,
    typer.Option(
        metavar="DOMAINS",
        envvar="HEADGATE_OIDC_DOMAINS",
        help="Domains, separated by commas, whose people get an account when they first sign in.",
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="HEADGATE_CERTIFICATE",
        help="Serve by TLS with this certificate (PEM); without it, a proxy has to.",
    ),
]
CertificateKey = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", envvar="HEADGATE_CERTIFICATE_KEY", help="The key of the certificate (PEM)."
    ),
]
Parent = Annotated[int, typer.Option(hidden=True, help="The process with which it ends.")]


def serve(  # noqa: PLR0917 - typer passes by keyword
    address: Listen = ADDRESS_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    state: StateUrl = "",
    public_url: PublicUrl = "",
    log_format: LogFormatOption = LogFormat.TEXT,
    hosts: Hosts = None,
    allow: Allow = "",
    oidc_issuer: OidcIssuer = "",
    oidc_client: OidcClient = "",
    oidc_secret: OidcSecret = "",
    oidc_domains: OidcDomains = "",
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    parent: Parent = 0,
) -> None:
    """Serve the HTTP API under /v1, and the links in mails.

    The API is described by /v1/openapi.json and needs a token (headgate token issue). It reads the
    items of the run in --folder. A run that sends mails is given the same --public-url. For other
    machines, put a server with TLS in front of it that passes requests on, or give it a
    --certificate. Requests name it by an address, as localhost, by the host of --public-url, or by
    a --host.

    [bold]headgate serve --address 127.0.0.1:8080 --public-url https://news.example[/bold]
    """
    # Late: the web framework takes half a second to load.
    from headgate.deliver.settings import checked_public_url  # noqa: PLC0415
    from headgate.service import server  # noqa: PLC0415
    from headgate.service.app import make_app  # noqa: PLC0415
    from headgate.service.oidc_provider import settings_of  # noqa: PLC0415

    if parent:
        die_with_parent(signal.SIGTERM)
        if os.getppid() != parent:
            return  # it has ended already
    configure_logs(log_format)
    host, port = _host_and_port(address)
    with option("--public-url"):
        public = checked_public_url(public_url)
    with option("--allow"):
        allowed = allowed_networks(allow)
    with option("--oidc-issuer"):
        openid = settings_of(oidc_issuer, oidc_client, oidc_secret, oidc_domains)
    with option("--certificate"):
        tls = _tls_files(certificate, certificate_key)
    if openid is not None and not public:
        raise typer.BadParameter("the provider sends people back there", param_hint="--public-url")
    with (
        open_headgate(catalog, folder=folder, log=log, state=state) as h,
        server.listen(host, port) as listening,
    ):
        h.catalog.installation_key()  # where it is missing, no link could be read
        bound = listening.getsockname()[1]
        scheme = "http" if tls is None else "https"
        print_line(f"serving at {scheme}://{host}:{bound}")
        if sys.stdout.isatty():  # elsewhere it would end in a log
            link = h.catalog.accounts.make_link(h.catalog.accounts.owner())
            print_line(f"sign in once, within an hour: {scheme}://localhost:{bound}/enter/{link}")
        if not public:
            print_line("mails have no links: name this service by --public-url, for the run too")
        names = [*(hosts or []), host, urlsplit(public).hostname or ""]
        app = make_app(h, hosts=names, public_url=public, allowed=allowed, openid=openid)
        try:
            server.serve(app, listening, tls)
        finally:
            app.state.service.watch.close()


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise typer.BadParameter("expected HOST:PORT", param_hint="--address")
    return host, int(port)


def _tls_files(certificate: Path | None, key: Path | None) -> TlsFiles | None:
    from headgate.service.server import TlsFiles  # noqa: PLC0415 - as above

    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise InvalidValue("a certificate needs its --certificate-key, and that a --certificate")
    return TlsFiles(certificate, key)


@contextmanager
def option(name: str) -> Iterator[None]:
    """An error in here is one of this option."""
    try:
        yield
    except HeadgateError as error:
        raise typer.BadParameter(str(error), param_hint=name) from None


# --- beside a run ---------------------------------------------------------------------------------


@contextmanager
def serving_beside(
    address: str,
    catalog: str,
    options: RunOptions,
    log_format: LogFormat,
    settings: Path | None = None,
) -> Iterator[str]:
    """The service of a run as a child; none without an address. If it ends it is started again.
    Its URL, or nothing."""
    if not address:
        yield ""
        return
    command = [sys.executable, "-m", "headgate", "serve"]
    command += [f"--address={address}", f"--parent={os.getpid()}"]
    # By the environment: the URL of a database may have a password, and commands can be listed.
    given = {
        "HEADGATE_CATALOG": catalog,
        "HEADGATE_FOLDER": str(options.folder),
        "HEADGATE_LOG": options.log,
        "HEADGATE_STATE": options.state,
        "HEADGATE_PUBLIC_URL": options.public_url,
        "HEADGATE_ALLOW": options.sources.get("allow", ""),
        "HEADGATE_LOG_FORMAT": log_format.value,
        FILE_VARIABLE: "" if settings is None else str(settings.absolute()),
    }
    child = _ServiceChild(
        command, os.environ | {name: given[name] for name in given if given[name]}
    )
    try:
        yield child.url
    finally:
        child.stop()


class _ServiceChild:
    """A process that is started again until it is stopped, each time after a longer pause."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command, self._environment = command, environment
        self._stopping = threading.Event()
        self._process = self._start()
        if not self._process.stdout or not (line := self._process.stdout.readline()):
            self._process.wait()
            raise PipelineError("the service did not start; see above")
        stderr.print(line.rstrip(), markup=False, highlight=False)
        self.url = line.split()[-1]
        self._thread = threading.Thread(target=self._keep, name="service", daemon=True)
        self._thread.start()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
            # SIGINT of the terminal is for the run, which then stops its child.
            process_group=0,
        )

    def _keep(self) -> None:
        pause_s = AGAIN_S
        while True:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                stderr.print(line.rstrip(), markup=False, highlight=False)
            code = self._process.wait()
            if self._stopping.is_set():
                return
            stderr.print(f"the service has ended ({code}), and is started again", highlight=False)
            if self._stopping.wait(pause_s):
                return
            pause_s = min(2 * pause_s, AGAIN_MAX_S)
            self._process = self._start()

    def stop(self) -> None:
        self._stopping.set()
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join(END_S)
