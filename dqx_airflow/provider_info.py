"""What Airflow is told of this package: its operators, connections and settings."""

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
        {
            "name": "dql_gate",
            "class-name": "dqx_airflow.operators.decorators.dql_gate_task",
        },
        {
            "name": "contract_gate",
            "class-name": "dqx_airflow.operators.decorators.contract_gate_task",
        },
    ],
    "triggers": [
        {
            "integration-name": "DQX",
            "python-modules": ["dqx_airflow.operators.trigger"],
        }
    ],
    "extra-links": ["dqx_airflow.operators.links.GateReportLink"],
    "connection-types": [
        {
            "connection-type": "dqx",
            "hook-class-name": "dqx_airflow.operators.results_hook.ResultsHook",
            "hook-name": "DQX results",
            "ui-field-behaviour": {
                "hidden-fields": ["schema", "port"],
                "relabeling": {
                    "host": "Results root",
                    "login": "Access key id, or account name",
                    "password": "Secret or account key",
                    "extra": "More options of the storage",
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
                    "description": "The address of an object store other than that of AWS.",
                },
            },
        }
    ],
    "config": {
        "dqx": {
            "description": "Settings of the gates.",
            "options": {
                "results_root": {
                    "description": "The root of the results store, a path or a URI, of all "
                    "gates that name none.",
                    "version_added": "0.1.0",
                    "type": "string",
                    "example": "s3://lake/dqx",
                    "default": None,
                },
                "results_conn_id": {
                    "description": "A connection of type dqx: the results root, and "
                    "the credentials of its storage, of all gates that name none, and of the "
                    "pages in the UI.",
                    "version_added": "0.1.0",
                    "type": "string",
                    "example": "dqx_default",
                    "default": None,
                },
                "jvm_archive": {
                    "description": "An archive of JVM classes, made with `dql package "
                    "--jvm-archive`, with which gates start faster whose driver runs on the "
                    "worker. The options of that JVM are then those of the gate's conf.",
                    "version_added": "0.1.0",
                    "type": "string",
                    "example": "/opt/dqx/gate.jsa",
                    "default": None,
                },
            },
        },
    },
}
