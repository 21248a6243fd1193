"""scripts/find_java, with false Javas and a false apt-get: nothing is ever installed here."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "find_java"
# What the script calls besides java and apt-get. They are linked into an empty PATH one by one,
# since the machine's own folders may hold a real Java.
TOOLS = ("bash", "cat", "env", "grep", "true")


@dataclass
class Machine:
    """A machine of which the test decides what is on it."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("bin", "jvm"):
            (self.folder / name).mkdir()
        for tool in TOOLS:
            real = shutil.which(tool)
            assert real is not None
            (self.folder / "bin" / tool).symlink_to(real)
        (self.folder / "os-release").write_text("ID=debian\n")

    def write_script(self, name: str, body: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
        return path

    def add_java(self, name: str, version: str) -> str:
        return str(self.write_script(name, f"""echo 'openjdk version "{version}"' >&2"""))

    def add_apt(self, body: str) -> None:
        """An apt-get that writes down its arguments, then does what the body says."""
        log = self.folder / "apt.log"
        self.write_script("bin/fake-apt", f'echo "$DEBIAN_FRONTEND $*" >>"{log}"\n{body}')
        self.write_script("bin/sudo", 'shift; exec "$@"')  # for tests that do not run as root
        self.settings["HEADGATE_APT_GET"] = "fake-apt"

    def apt_calls(self) -> list[str]:
        return (self.folder / "apt.log").read_text().splitlines()

    def find_java(self) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": str(self.folder / "bin"),
            "HEADGATE_JVM_DIR": str(self.folder / "jvm"),
            "HEADGATE_OS_RELEASE": str(self.folder / "os-release"),
            "HEADGATE_BREW_DIRS": "",
            "HEADGATE_APT_GET": "",
        }
        return subprocess.run(
            [str(self.folder / "bin" / "bash"), str(SCRIPT)],
            env=environment | self.settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.1", "22-ea", "25", "17.0.9-internal"])
def test_a_java_that_is_new_enough_is_printed(machine: Machine, version: str):
    java = machine.add_java("bin/java", version)
    done = machine.find_java()
    assert (done.returncode, done.stdout) == (0, java + "\n")


@pytest.mark.parametrize("version", ["1.7.0_80", "1.8.0_392", "9", "11.0.2", "16.0.1", "16-ea"])
def test_a_java_that_is_too_old_is_refused(machine: Machine, version: str):
    java = machine.add_java("bin/java", version)
    done = machine.find_java()
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{java} is Java" in done.stderr


def test_a_message_before_the_version_does_no_harm(machine: Machine):
    body = "echo 'Picked up _JAVA_OPTIONS: -Dversion=8' >&2; echo 'java version \"21\"' >&2"
    machine.write_script("bin/java", body)
    assert machine.find_java().returncode == 0


def test_a_java_that_only_fails_is_passed_over(machine: Machine):
    machine.write_script("bin/java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    good = machine.add_java("jvm/java-17/bin/java", "17.0.15")
    assert machine.find_java().stdout == good + "\n"


def test_java_home_comes_first(machine: Machine):
    machine.add_java("bin/java", "21")
    home = machine.add_java("my java/bin/java", "17")
    machine.settings["JAVA_HOME"] = str(machine.folder / "my java")
    assert machine.find_java().stdout == home + "\n"


def test_an_old_java_home_does_not_hide_a_new_java(machine: Machine):
    machine.add_java("old/bin/java", "1.8.0_392")
    machine.settings["JAVA_HOME"] = str(machine.folder / "old")
    new = machine.add_java("bin/java", "21")
    assert machine.find_java().stdout == new + "\n"


def test_without_java_it_says_what_to_install(machine: Machine):
    done = machine.find_java()
    assert done.returncode == 1
    for words in ("apt-get install openjdk-17", "dnf install", "brew install", "JAVA_HOME"):
        assert words in done.stderr


def test_it_installs_on_debian(machine: Machine):
    java = machine.folder / "bin" / "java"
    made = f"""printf '#!/bin/bash\\necho version \\\\"17.0.1\\\\" >&2\\n' >"{java}"; """
    machine.add_apt(f'case "$*" in *17*) {made} /bin/chmod +x "{java}";; esac')
    done = machine.find_java()
    assert (done.returncode, done.stdout) == (0, f"{java}\n")
    assert machine.apt_calls() == [
        "noninteractive update -qq",
        "noninteractive install -y -qq --no-install-recommends openjdk-17-jre-headless",
    ]


def test_it_tries_other_packages_where_the_first_does_not_exist(machine: Machine):
    machine.add_apt('case "$*" in *install*) exit 100;; esac')
    done = machine.find_java()
    assert done.returncode == 1
    assert [call.split()[-1] for call in machine.apt_calls()[1:]] == [
        "openjdk-17-jre-headless",
        "openjdk-21-jre-headless",
        "default-jre-headless",
    ]


def test_it_installs_nothing_where_java_is_there(machine: Machine):
    machine.add_java("bin/java", "17")
    machine.add_apt("exit 1")
    assert machine.find_java().returncode == 0
    assert not (machine.folder / "apt.log").exists()


def test_it_installs_nothing_on_other_systems(machine: Machine):
    (machine.folder / "os-release").write_text("ID=fedora\n")
    machine.add_apt("exit 0")
    assert machine.find_java().returncode == 1
    assert not (machine.folder / "apt.log").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root needs no sudo")
def test_it_asks_nobody_for_a_password(machine: Machine):
    machine.add_apt("exit 0")
    machine.write_script("bin/sudo", "exit 1")
    assert machine.find_java().returncode == 1
    assert not (machine.folder / "apt.log").exists()
