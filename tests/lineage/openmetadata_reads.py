"""What OpenMetadata's OpenLineage connector reads from events: a program for an environment that
has it.

Reads events from the standard input as JSON, and writes for each of them the pipeline, the tables
that are tried for each dataset, and whether the API of its server would accept it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from metadata.generated.schema.api.lineage.openlineage.openLineageRunEvent import (
    OpenLineageRunEvent,
)
from metadata.ingestion.source.pipeline.openlineage.metadata import OpenlineageSource
from metadata.ingestion.source.pipeline.openlineage.utils import message_to_open_lineage_event


def read(event: dict[str, Any]) -> dict[str, Any]:
    OpenLineageRunEvent.model_validate(event)
    heard = message_to_open_lineage_event(event)
    return {
        "type": heard.event_type,
        "pipeline": OpenlineageSource._render_pipeline_name(heard),
        "tables": {
            dataset["name"]: [
                f"{table.schema}.{table.name}"
                for table, _ in OpenlineageSource._iter_table_candidates(dataset)
            ]
            for dataset in (*heard.inputs, *heard.outputs)
        },
    }


json.dump([read(event) for event in json.load(sys.stdin)], sys.stdout)
