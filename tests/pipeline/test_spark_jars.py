"""Which versions of the connector are taken, with a Maven client that has only some of them."""

from __future__ import annotations

import stat
from pathlib import Path

import pyspark
import pytest

from headgate.pipeline.spark_jars import (
    NO_TOKENS,
    TESTED,
    ConnectorVersions,
    get_connector,
    jar_settings,
    usable_versions,
)

OWN = ConnectorVersions(pyspark.__version__, pyspark.__version__)
OLDER = usable_versions()[1]
MAVEN = """\
#!/bin/sh
for each in "$@"; do
    case $each in
    -DoutputDirectory=*) folder=${each#*=} ;;
    *pom.xml) pom=$each ;;
    esac
done
echo called >> HERE/calls
if grep -q "MISSING" "$pom"; then
    echo "[ERROR] Failed to execute goal: MESSAGE -> [Help 1]"
    exit 1
fi
mkdir -p "$folder"
name='<artifactId>\\(.*\\)</artifactId>' version='<version>\\(.*\\)</version>'
grep -v "<groupId>headgate" "$pom" | sed -n "s:.*$name$version$:\\1-\\2.jar:p" |
    while read -r jar; do touch "$folder/$jar"; done
"""


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make a Maven client that fails with a message if a version is asked for."""

    def make(missing: str = "nothing is missing", message: str = "") -> None:
        script = tmp_path / "bin" / "mvn"
        script.parent.mkdir(exist_ok=True)
        text = MAVEN.replace("HERE", str(tmp_path)).replace("MISSING", missing)
        script.write_text(text.replace("MESSAGE", message))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")

    return make


def not_found(name: str) -> str:
    return f"Could not find artifact org.apache.spark:{name}:jar:{pyspark.__version__} in central"


def jar_names(folder: Path) -> set[str]:
    return {each.name for each in folder.glob("*")}


def test_the_connector_of_spark_comes_first(tmp_path: Path, maven) -> None:
    maven()
    assert get_connector(tmp_path / "jars") == (OWN, "")
    assert f"spark-sql-kafka-0-10_2.13-{pyspark.__version__}.jar" in jar_names(tmp_path / "jars")
    assert OWN.describe() == f"Kafka connector {pyspark.__version__}"
    assert NO_TOKENS.keys().isdisjoint(jar_settings(str(tmp_path / "jars")))


@pytest.mark.parametrize(
    "message",
    [
        not_found("spark-sql-kafka-0-10_2.13"),
        not_found("spark-token-provider-kafka-0-10_2.13"),
        "org.apache.spark:spark-sql-kafka-0-10_2.13:jar:4.3.0 was not found in a repository",
    ],
)
def test_an_unpublished_one_is_replaced_by_a_tested_one(
    tmp_path: Path, maven, message: str
) -> None:
    maven(f"<version>{pyspark.__version__}<", message)
    folder = tmp_path / "jars"
    versions, problem = get_connector(folder)
    assert versions == OLDER
    assert message in problem
    assert jar_names(folder) == {f"{name}-{version}.jar" for _, name, version in OLDER.artifacts()}
    assert "no delegation tokens" in OLDER.describe()
    assert NO_TOKENS.items() <= jar_settings(str(folder)).items()


def test_a_network_that_fails_is_no_reason_for_an_older_one(tmp_path: Path, maven) -> None:
    maven(f"<version>{pyspark.__version__}<", "Could not transfer artifact: connection refused")
    versions, problem = get_connector(tmp_path / "jars")
    assert versions is None
    assert "connection refused" in problem
    assert (tmp_path / "calls").read_text() == "called\n"
    (tmp_path / "jars").mkdir()
    for _, name, version in OLDER.artifacts():
        (tmp_path / "jars" / f"{name}-{version}.jar").touch()
    assert get_connector(tmp_path / "jars")[0] == OLDER, "what is there already stays"


def test_jars_of_another_spark_are_replaced(tmp_path: Path, maven) -> None:
    maven()
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "spark-sql-kafka-0-10_2.13-3.5.0.jar").touch()
    assert get_connector(folder)[0] == OWN
    assert "spark-sql-kafka-0-10_2.13-3.5.0.jar" not in jar_names(folder)


def test_a_release_without_a_tested_set_has_its_own_only() -> None:
    assert usable_versions("9.9.0") == (ConnectorVersions("9.9.0", "9.9.0"),)
    assert ".".join(pyspark.__version__.split(".")[:2]) in TESTED
