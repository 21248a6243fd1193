"""A real PostgreSQL server for the tests, from Debian's packages, alone on a free port.

It refuses to run as root, so root runs it as another user. It is started with durability off, as
tests kill the client and not the server; with `durable` it can be killed, too.
"""

import fcntl
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

START_TIMEOUT_S = 60
INSTALL_TIMEOUT_S = 300
USER = "headgate"
ROLE = "catalog_owner"


class CannotRun(Exception):
    """Why there is no server; tests are skipped with this reason."""


class PostgresServer:
    def __init__(self, *, durable: bool = False) -> None:
        self._fsync = "on" if durable else "off"
        self.port = _free_port()
        self._binaries = _find_or_install()
        self._run_as = _unprivileged_user()
        self._folder = Path(tempfile.mkdtemp(prefix="headgate-postgres-"))
        self.password = secrets.token_hex(8)
        self._schemas = 0
        self._log: deque[str] = deque(maxlen=50)
        try:
            self._make_cluster()
            self._start()
        except BaseException:
            shutil.rmtree(self._folder)
            raise

    def new_url(self) -> str:
        """The URL of a fresh, empty schema, for an ordinary role: superusers are not restricted by
        row-level security."""
        self._schemas += 1
        schema = f"test_{self._schemas}"
        with psycopg.connect(self.url()) as connection:
            if self._schemas == 1:
                connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{self.password}'")
            connection.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {ROLE}")
        return self.url(schema=schema, user=ROLE)

    def url(self, *, schema: str = "public", password: str | None = None, user: str = USER) -> str:
        options = quote(f"-csearch_path={schema}")
        login = f"{user}:{password or self.password}"
        return f"postgresql://{login}@127.0.0.1:{self.port}/postgres?options={options}"

    def kill(self) -> None:
        self._process.kill()
        self._reader.join()

    def start_again(self) -> None:
        """On the same port; what was committed is there."""
        # Processes of the killed server end by themselves, and hold its memory until then.
        until = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                self._start()
                return
            except CannotRun:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGQUIT)  # at once: nothing here is worth keeping
        self._process.wait(START_TIMEOUT_S)
        self._reader.join()
        shutil.rmtree(self._folder)

    def _make_cluster(self) -> None:
        password_file = self._folder / "password"
        password_file.write_text(self.password)
        for path in (self._folder, password_file):
            os.chown(path, *self._run_as)
        command = ["initdb", "-D", "data", "-U", USER, "--pwfile=password", "--no-sync"]
        command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions"]
        done = self._spawn(command)
        output = done.communicate(timeout=START_TIMEOUT_S)[0]
        if done.returncode != 0:
            raise CannotRun(f"initdb failed: {output}")

    def _start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "port": self.port,
            "fsync": self._fsync,
            "max_connections": 40,
            "shared_buffers": "16MB",
        }
        command = ["postgres", "-D", "data"]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        self._process = self._spawn(command)
        ready = threading.Event()
        self._reader = threading.Thread(target=self._read_log, args=[ready], daemon=True)
        self._reader.start()
        ready.wait(START_TIMEOUT_S)
        if self._process.poll() is not None:
            raise CannotRun("PostgreSQL did not start: " + "".join(self._log))

    def _read_log(self, ready: threading.Event) -> None:
        """Reads until the server ends, or the pipe would fill up and stop it."""
        assert self._process.stdout is not None
        with self._process.stdout as log:
            for line in log:
                self._log.append(line)
                if "ready to accept connections" in line:
                    ready.set()
        self._process.wait()
        ready.set()

    def _spawn(self, command: list[str]) -> "subprocess.Popen[str]":
        user, group = self._run_as
        as_root = os.geteuid() == 0
        return subprocess.Popen(
            [self._binaries / command[0], *command[1:]],
            cwd=self._folder,
            env={"LC_ALL": "C", "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=user if as_root else None,
            group=group if as_root else None,
            extra_groups=[] if as_root else None,
        )


def _find_or_install() -> Path:
    # One test process installs while the others wait for it.
    with _one_at_a_time():
        found = _find()
        if found is None:
            _install()
            found = _find()
    if found is None:
        raise CannotRun("PostgreSQL's programs are not where Debian puts them")
    return found


def _find() -> Path | None:
    on_path = shutil.which("initdb")
    if on_path and shutil.which("postgres", path=str(Path(on_path).parent)):
        return Path(on_path).resolve().parent
    folders = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in folders), key=_major_version, default=None)


def _major_version(binaries: Path) -> int:
    text = binaries.parent.name
    return int(text) if text.isdecimal() else 0


def _install() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotRun("PostgreSQL is not installed, and only root on Debian can install it here")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120"]
    install = [*apt, "install", "-y", "--no-install-recommends", "postgresql"]
    with _services_stay_down():
        for command in ([*apt, "update"], install):
            try:
                subprocess.run(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=True,
                    timeout=INSTALL_TIMEOUT_S,
                )
            except subprocess.CalledProcessError as error:
                reason = error.stderr.strip()[-300:]
                raise CannotRun(f"PostgreSQL cannot be installed: {reason}") from None
            except subprocess.TimeoutExpired:
                raise CannotRun("PostgreSQL cannot be installed: apt-get takes too long") from None


@contextmanager
def _services_stay_down() -> Iterator[None]:
    """Debian runs this file to decide whether the service of a new package may start."""
    policy = Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    lock = Path(tempfile.gettempdir()) / f"headgate-postgres-install-{os.geteuid()}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _unprivileged_user() -> tuple[int, int]:
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return user.pw_uid, user.pw_gid
    raise CannotRun("there is no user 'postgres' or 'nobody' to run PostgreSQL as")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
