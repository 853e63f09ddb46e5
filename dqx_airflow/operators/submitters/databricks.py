"""Runs of Databricks jobs, one for each gate.

https://docs.databricks.com/api/workspace/jobs/submit
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dqx_airflow import __version__
from dqx_airflow.operators.submitters import DriverEnd, Job, Submitter, job_end

_ENDED = {"TERMINATED", "SKIPPED", "INTERNAL_ERROR"}
_PACKAGE = {"package_name": "dqx_airflow", "entry_point": "gate_job"}
_UNKNOWN_RUN = "does not exist"


@dataclass(frozen=True)
class DatabricksRuns(Submitter):
    """Submits a gate as a one-time run of a job.

    :param task: the task in the body of `runs/submit`: `new_cluster` or `existing_cluster_id`, and
        so on. With a `spark_python_task`, its `python_file` is `gate_job.py`. Without one, the task
        calls this package as a wheel: name it in `libraries`, or the cluster installs it from its
        index in the version of the worker.
    :param databricks_conn_id: the connection to the workspace.
    :param run: more of the body, such as `access_control_list` or `environments`.
    """

    task: Mapping[str, Any]
    databricks_conn_id: str = "databricks_default"
    run: Mapping[str, Any] | None = None

    def submit(self, job: Job) -> str:
        """The id of the run. For the same token, Databricks returns the id of the first run."""
        body: dict[str, Any] = {"run_name": job.name, "idempotency_token": job.token}
        if job.limit_s is not None:
            body["timeout_seconds"] = job.limit_s
        body.update(self.run or {})
        return str(self._hook.submit_run({**body, "tasks": [self._task(job)]}))

    def _task(self, job: Job) -> dict[str, Any]:
        task: dict[str, Any] = {"task_key": "gate", **self.task}
        if "spark_python_task" in task:
            task["spark_python_task"] = {**task["spark_python_task"], "parameters": job.arguments}
        else:
            given = task.get("python_wheel_task", {})
            task["python_wheel_task"] = {**_PACKAGE, **given, "parameters": job.arguments}
            package = {"pypi": {"package": f"dqx-airflow=={__version__}"}}
            if "environment_key" not in task:
                task.setdefault("libraries", [package])
        if cluster := task.get("new_cluster"):
            conf = {**job.conf, **cluster.get("spark_conf", {})}
            task["new_cluster"] = {**cluster, "spark_conf": conf}
        return task

    def state(self, handle: str) -> DriverEnd | None:
        """The end of the run, with its error; None while it runs."""
        try:
            run = self._hook.get_run(int(handle))
        except Exception as error:
            if _UNKNOWN_RUN in str(error):
                return DriverEnd(f"Databricks no longer knows the run {handle}")
            raise
        state = run["state"]
        if state["life_cycle_state"] not in _ENDED:
            return None
        result = state.get("result_state") or state["life_cycle_state"]
        what = f"the run {handle} ended as {result}"
        if result == "SUCCESS":
            return job_end(what, has_succeeded=True)
        messages = [state.get("state_message", "")]
        with suppress(Exception):  # a run that has not begun has no output
            output = self._hook.get_run_output(run["tasks"][0]["run_id"])
            messages += [output.get("logs", ""), output.get("error", "")]
        return job_end(what, "\n".join(filter(None, messages)))

    def cancel(self, handle: str) -> None:
        """Cancels the run, without waiting for its end."""
        self._hook.cancel_run(int(handle))

    def logs_url(self, handle: str) -> str | None:
        """The page of the run."""
        return str(self._hook.get_run_page_url(int(handle)))

    @cached_property
    def _hook(self) -> Any:
        from airflow.providers.databricks.hooks.databricks import DatabricksHook

        return DatabricksHook(self.databricks_conn_id, caller="dqx_airflow", timeout_seconds=60)
