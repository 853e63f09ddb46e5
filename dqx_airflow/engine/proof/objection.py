"""Says why a gate does not judge a request on its engine: the proof of that engine doubts it.

Gates in a cluster run this from the bundle, which has neither the cases nor what runs them.
"""

from __future__ import annotations

from collections.abc import Mapping

from dqx_airflow.engine.proof.engine_key import KnownEngine
from dqx_airflow.engine.proof.operations import SeenDataset, operations_of, traits_of, widened
from dqx_airflow.plan.model import MetricRequest


def objection_to_engine(
    request: MetricRequest, datasets: Mapping[str, SeenDataset], known: KnownEngine
) -> str | None:
    """The reason for not judging a request on an engine; None if the engine has no doubted trait of
    it."""
    doubted = widened(known.doubts)
    used = sorted(traits_of(request, datasets) & doubted)
    if not used:
        return None
    parts = dict.fromkeys(
        one.text for one in operations_of(request, datasets) if one.traits & doubted
    )
    quoted = ", ".join(f"`{part}`" for part in parts)
    where = f", as in {quoted}" if quoted else ""
    reason = f"this engine was found to compute other values with {', '.join(used)}{where}"
    if known.outlived is None:
        return f"{reason}: `dql doctor --prove` shows them"
    return f"{reason} ({known.outlived}): prove it again with `dql doctor --prove`"
