"""File systems that a local Spark cannot reach are reported before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.engine.session.file_systems import check_file_systems
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef

LOCAL = connection_of("local[2]")


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SPARK_DIST_CLASSPATH", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-client-api-3.4.2.jar").touch()
    return tmp_path / "jars"


def ref(path: str) -> DatasetRef:
    return DatasetRef("orders", path=path, format="parquet")


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("s3://lake/orders", "org.apache.hadoop:hadoop-aws:3.4.2"),
        ("s3a://lake/orders", "org.apache.hadoop:hadoop-aws:3.4.2"),
        ("abfss://a@b.dfs.core.windows.net/c", "org.apache.hadoop:hadoop-azure:3.4.2"),
        ("gs://lake/orders", "com.google.cloud.bigdataoss:gcs-connector:"),
    ],
)
def test_a_store_without_its_jar_is_refused_with_the_setting(
    jars: Path, path: str, package: str
) -> None:
    with pytest.raises(RequestError) as caught:
        check_file_systems(LOCAL, {}, [ref("/lake/orders"), ref(path)])
    assert f"no file system for {path.partition(':')[0]}://" in caught.value.problem
    assert f'set "spark.jars.packages" = "{package}' in caught.value.hint
    # What other jars there are is not known here, nor what a cluster has.
    check_file_systems(LOCAL, {"spark.jars": "/opt/bundle.jar"}, [ref(path)])
    check_file_systems(connection_of("sc://spark.example.com"), {}, [ref(path)])


def test_an_existing_jar_is_enough(jars: Path) -> None:
    (jars / "hadoop-aws-3.4.2.jar").touch()
    check_file_systems(LOCAL, {}, [ref("s3a://lake/orders")])
