"""The jars of Spark's Kafka connector, which PySpark's package does not contain.

    python -m headgate.pipeline.spark_jars        once, when Headgate is installed
        mvn dependency:copy-dependencies  ──►  <environment>/spark-jars/*.jar
    headgate run                                   spark.jars = these files

The machine's own Maven client resolves them, from wherever it is configured to look. The connector
must have the version of PySpark. Where they cannot be had, everything works but Kafka sources,
which are refused with what to do (`MISSING`). `HEADGATE_SPARK_JARS` names another folder, or files
separated by commas; `headgate run --jars` does the same, and `spark.jars.packages` works as usual.

Each artifact is named on its own, without what it depends on. Rejected: resolving them
transitively, because Spark's parent POM names a repository of its own that Maven would ask first,
and a machine that only reaches a mirror fails there; the rest (Scala, Spark itself) is in PySpark.

The settings name jars by `spark.jars`, which also ships them to executors. Rejected: the class path
of the driver (`spark.driver.extraClassPath`), because a class archive (java_archive.py) is valid
for one class path only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark
from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

JARS_VARIABLE = "HEADGATE_SPARK_JARS"
TIMEOUT_S = 600
SCALA = "2.13"
CONNECTOR = f"spark-sql-kafka-0-10_{SCALA}"
MISSING = (
    "Kafka needs Spark's connector, and its jars are not there: get them with 'python -m "
    "headgate.pipeline.spark_jars' (it uses Maven), or give them with --jars or "
    f"{JARS_VARIABLE}"
)
_KAFKA_CLIENTS, _POOL = "3.9.2", "2.13.1"
"""The versions that the connector of PySpark 4.3 names."""
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

Artifact = tuple[str, str, str]
"""Group, name, version."""


def connector_artifacts() -> list[Artifact]:
    version = pyspark.__version__
    return [
        ("org.apache.spark", CONNECTOR, version),
        ("org.apache.spark", f"spark-token-provider-kafka-0-10_{SCALA}", version),
        ("org.apache.kafka", "kafka-clients", _KAFKA_CLIENTS),
        ("org.apache.commons", "commons-pool2", _POOL),
    ]


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
    return {"spark.jars": ",".join(str(each) for each in jars)} if jars else {}


def has_connector_jars(given: str = "") -> bool:
    """Whether the jars are there, as far as files tell; before Spark starts."""
    return any(each.name.startswith("spark-sql-kafka") for each in spark_jars(given))


def has_connector(session: SparkSession) -> bool:
    """Whether this session has the connector, wherever it comes from."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    return isinstance(jvm.org.apache.spark.sql.kafka010.KafkaSourceProvider, JavaClass)


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


def main() -> int:
    if any(each.name.startswith("spark-sql-kafka") for each in jars_folder().glob("*.jar")):
        sys.stdout.write(f"{jars_folder()}\n")
        return 0
    problem = resolve(connector_artifacts(), jars_folder())
    sys.stdout.write(f"{problem}\n" if problem else f"{jars_folder()}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
