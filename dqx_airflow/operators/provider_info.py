"""The metadata of this package for Airflow: its operators, connections and settings."""

from __future__ import annotations

from typing import Any

PROVIDER_INFO: dict[str, Any] = {
    "package-name": "dqx-airflow",
    "name": "DQX gates",
    "description": "Gate operators that stop bad data between two tasks of a pipeline.",
    "operators": [
        {
            "integration-name": "DQX",
            "python-modules": [
                "dqx_airflow.operators.contract_gate",
                "dqx_airflow.operators.dql_gate",
            ],
        }
    ],
    "task-decorators": [
        {"name": "dql_gate", "class-name": "dqx_airflow.operators.decorators.dql_gate_task"},
        {
            "name": "contract_gate",
            "class-name": "dqx_airflow.operators.decorators.contract_gate_task",
        },
    ],
    "triggers": [{"integration-name": "DQX", "python-modules": ["dqx_airflow.operators.trigger"]}],
    "extra-links": ["dqx_airflow.operators.links.GateReportLink"],
    "connection-types": [
        {
            "connection-type": "dqx",
            "hook-class-name": "dqx_airflow.operators.results_location.ResultsHook",
            "hook-name": "DQX results",
            "ui-field-behaviour": {
                "hidden-fields": ["schema", "port"],
                "relabeling": {
                    "host": "Results root",
                    "login": "Access key ID or account name",
                    "password": "Secret or account key",
                    "extra": "Additional storage options",
                },
                "placeholders": {"host": "s3://lake/dqx"},
            },
            "conn-fields": {
                "aws_region": {
                    "label": "Region",
                    "schema": {"type": ["string", "null"]},
                    "description": "The region of an S3 bucket.",
                },
                "aws_endpoint_url": {
                    "label": "Endpoint",
                    "schema": {"type": ["string", "null"]},
                    "description": "The endpoint of an object store other than AWS.",
                },
            },
        }
    ],
    "config": {
        "dqx": {
            "description": "Settings of the gates.",
            "options": {
                "results_root": {
                    "description": "The default root of the results store, a path or URI, for all "
                    "gates.",
                    "version_added": "0.1.0",
                    "type": "string",
                    "example": "s3://lake/dqx",
                    "default": None,
                },
                "spark_log_folder": {
                    "description": "The folder on the worker in which the output of Spark is kept; "
                    "by default dqx_spark below base_log_folder of section logging.",
                    "version_added": "0.2.0",
                    "type": "string",
                    "example": "/var/log/dqx",
                    "default": None,
                },
                "results_conn_id": {
                    "description": "A connection of type dqx with the results root and the "
                    "credentials of its storage: the default for all gates, and used by the "
                    "pages in the UI.",
                    "version_added": "0.1.0",
                    "type": "string",
                    "example": "dqx_default",
                    "default": None,
                },
                "jvm_archive": {
                    "description": "An archive of JVM classes from `dql package --jvm-archive`. "
                    "Gates whose driver runs on the worker start faster with it. The options of "
                    "that JVM are then those of the gate's conf.",
                    "version_added": "0.1.0",
                    "type": "string",
                    "example": "/opt/dqx/gate.jsa",
                    "default": None,
                },
            },
        }
    },
}
