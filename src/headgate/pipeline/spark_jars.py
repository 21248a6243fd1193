"""The jars of Spark's Kafka connector, which PySpark's package does not contain.

    headgate prepare                               once, when Headgate is installed
        mvn dependency:copy-dependencies  ──►  <environment>/spark-jars/*.jar
    headgate run                                   spark.jars = these files

The machine's own Maven client resolves them, from wherever it is configured to look. Where they
cannot be had, everything works but Kafka sources, which are refused with what to do (`MISSING`).
`HEADGATE_SPARK_JARS` names another folder, or files separated by commas; `headgate run --jars` does
the same, and `spark.jars.packages` works as usual.

**Versions.** The connector of PySpark's own version is asked for first. Only where it is not
published, an older one is taken, from the list `TESTED`: sets of versions that pass the tests
against a real broker, and whose references to classes, methods and fields were looked up one by one
in the jars of PySpark. A network that fails is no reason to take an older one.

    connector  token provider   with Spark 4.3.0
    4.3.0      4.3.0            its own
    4.2.0      4.0.0            all 6,458 references resolve but LogKeys$SERVICE_NAME$ and
                                LogKeys$CLUSTER_ID$, which the token provider uses for warnings
                                about delegation tokens (Kerberos): these tokens are switched off
    4.1.1      4.0.0            fails: NoSuchMethodError HDFSMetadataLog.<init>(SparkSession, …)
    4.0.0      4.0.0            fails: NoSuchMethodError SerializedOffset.<init>(String); 66
                                references do not resolve

The token provider 4.2.0 would be the right one for the connector 4.2.0; it was not published where
the set was tested. The connector refers to nothing of it that 4.0.0 lacks. Passwords and
certificates (`kafka.sasl.*`, `kafka.ssl.*`) are settings of Kafka's client.

Each artifact is named on its own, without what it depends on. Rejected: resolving them
transitively, because Spark's parent POM names a repository of its own that Maven would ask first,
and a machine that only reaches a mirror fails there; the rest (Scala, Spark itself) is in PySpark.

The settings name jars by `spark.jars`, which also ships them to executors. Rejected: the class path
of the driver (`spark.driver.extraClassPath`), because a class archive (java_archive.py) is valid
for one class path only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyspark
from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

JARS_VARIABLE = "HEADGATE_SPARK_JARS"
TIMEOUT_S = 600
SCALA = "2.13"
CONNECTOR = f"spark-sql-kafka-0-10_{SCALA}"
MISSING = (
    "Kafka needs Spark's connector, and its jars are not there: get them with "
    "'headgate prepare' (it uses Maven), or give them with --jars or "
    f"{JARS_VARIABLE}"
)
NO_TOKENS = {"spark.security.credentials.kafka.enabled": "false"}
"""Spark then asks no broker for delegation tokens."""
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>headgate</groupId><artifactId>spark-jars</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
      <exclusions>{exclusions}</exclusions>
    </dependency>"""
_NOTHING_ELSE = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"

_VERSION = re.compile(r"(spark-(?:sql|token-provider)-kafka)-.*-([0-9][^-]*)\.jar")
_UNPUBLISHED = re.compile(
    r"Could not find artifact org\.apache\.spark:|org\.apache\.spark:\S+ was not found in"
)
"""What Maven says of an artifact that it has just asked for, or that it asked for lately."""

Artifact = tuple[str, str, str]
"""Group, name, version."""


@dataclass(frozen=True, slots=True)
class ConnectorVersions:
    """The connector, and the versions of what it needs: the clients and the pool are those that it
    names itself."""

    connector: str
    token_provider: str
    kafka_clients: str = "3.9.2"
    pool: str = "2.13.1"

    def artifacts(self) -> list[Artifact]:
        return [
            ("org.apache.spark", CONNECTOR, self.connector),
            ("org.apache.spark", f"spark-token-provider-kafka-0-10_{SCALA}", self.token_provider),
            ("org.apache.kafka", "kafka-clients", self.kafka_clients),
            ("org.apache.commons", "commons-pool2", self.pool),
        ]

    def are_in(self, folder: Path) -> bool:
        jars = {each.name for each in folder.glob("*.jar")}
        return jars == {f"{name}-{version}.jar" for _, name, version in self.artifacts()}

    def describe(self) -> str:
        """
        >>> print(ConnectorVersions("4.2.0", "4.0.0").describe().replace(pyspark.__version__, "V"))
        Kafka connector 4.2.0; that of Spark V is not published here, no delegation tokens
        """
        text = f"Kafka connector {self.connector}"
        if self.connector != pyspark.__version__:
            text += f"; that of Spark {pyspark.__version__} is not published here"
        return text if self.token_provider == self.connector else f"{text}, no delegation tokens"


TESTED = {"4.3": (ConnectorVersions("4.2.0", "4.0.0"),)}
"""Sets that work with a release of Spark in place of its own connector; the best first."""


def usable_versions(spark: str = pyspark.__version__) -> tuple[ConnectorVersions, ...]:
    """
    >>> [each.connector for each in usable_versions("4.3.1")]
    ['4.3.1', '4.2.0']
    """
    release = ".".join(spark.split(".")[:2])
    return (ConnectorVersions(spark, spark), *TESTED.get(release, ()))


def jars_folder() -> Path:
    """Next to the installed packages, so that an environment that is deleted takes them along."""
    return Path(sys.prefix) / "spark-jars"


def spark_jars(given: str = "") -> list[Path]:
    """The jars to give to Spark: those that the operator names, else those of the environment.

    `given` is a folder, or files separated by commas.
    """
    named = given or os.environ.get(JARS_VARIABLE, "")
    if not named:
        return sorted(jars_folder().glob("*.jar"))
    paths = [Path(each.strip()).absolute() for each in named.split(",") if each.strip()]
    return [
        jar for path in paths for jar in (sorted(path.glob("*.jar")) if path.is_dir() else [path])
    ]


def jar_settings(given: str = "") -> dict[str, str]:
    """Spark's settings that add the jars; empty if there are none."""
    jars = spark_jars(given)
    if not jars:
        return {}
    found = [match for each in jars if (match := _VERSION.fullmatch(each.name))]
    is_mixed = len({match[2] for match in found}) > 1
    settings = {"spark.jars": ",".join(str(each) for each in jars)}
    return settings | (NO_TOKENS if is_mixed else {})


def has_connector_jars(given: str = "") -> bool:
    """Whether the jars are there, as far as files tell; before Spark starts."""
    return any(each.name.startswith("spark-sql-kafka") for each in spark_jars(given))


def has_connector(session: SparkSession) -> bool:
    """Whether this session has the connector, wherever it comes from."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    return isinstance(jvm.org.apache.spark.sql.kafka010.KafkaSourceProvider, JavaClass)


def connector_version(session: SparkSession) -> str:
    """The version of the connector that this session has loaded; empty if its jar has none."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    provider = jvm.org.apache.spark.sql.kafka010.KafkaSourceProvider()
    return str(provider.getClass().getPackage().getImplementationVersion() or "")


def get_connector(folder: Path) -> tuple[ConnectorVersions | None, str]:
    """Bring the best set that is published into the folder. Returns the set that is there then, and
    why no better one could be had."""
    problem = ""
    for versions in usable_versions():
        if versions.are_in(folder):
            return versions, problem
        failure = resolve(versions.artifacts(), folder)
        if not failure:
            return versions, problem
        problem = problem or failure
        if not _UNPUBLISHED.search(failure):
            break
    return next((each for each in usable_versions() if each.are_in(folder)), None), problem


def resolve(artifacts: list[Artifact], folder: Path, *, transitive: bool = False) -> str:
    """Have Maven copy these artifacts into the folder. Returns why that failed, or nothing."""
    maven = shutil.which("mvn")
    if maven is None:
        return "there is no Maven (mvn) on this machine"
    exclusions = "" if transitive else _NOTHING_ELSE
    dependencies = "".join(
        _DEPENDENCY.format(group=group, artifact=name, version=version, exclusions=exclusions)
        for group, name, version in artifacts
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        pom, fresh = Path(work) / "pom.xml", Path(work) / "jars"
        pom.write_text(_POM.format(dependencies=dependencies), encoding="utf-8")
        command = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={fresh}", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"Maven took more than {TIMEOUT_S} s"
        if done.returncode or not fresh.is_dir():
            return _first_error(done.stdout + done.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    return ""


def _first_error(output: str) -> str:
    errors = [
        line.partition("[ERROR]")[2].strip() for line in output.splitlines() if "ERROR" in line
    ]
    return (errors or ["Maven failed"])[0][:500]
