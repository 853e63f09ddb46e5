"""The values that travel between the packages, each with a JSON form.

A `GateRequest` (`request`) goes in, a `GateReport` (`report`) comes out; `contracts` has the
sources, statuses and facts about contracts that both refer to. Everything here is frozen, contains
only strings, numbers, dates and tuples of such values, and uses only the standard library (the JSON
form uses cattrs, imported on first use).
"""

from __future__ import annotations

from dqx_airflow.values.contracts import (
    NO_REPORT,
    ContractDescription,
    EnforcedClause,
    EnforcedContract,
    FieldDescription,
    FieldSource,
    ImportedFile,
    Outcome,
    Responsible,
    Severity,
    SourceDigest,
    SourceFile,
    SourceLocation,
    Span,
    Status,
    UnenforcedClause,
    WordEnum,
    worst_outcome,
)
from dqx_airflow.values.engine_proof import Difference, EngineProof
from dqx_airflow.values.json_form import from_json, to_json
from dqx_airflow.values.report import (
    DatasetSnapshot,
    FailingRow,
    GateReport,
    MetricResult,
    MetricValue,
    Promotion,
    ShadowReport,
    Verdict,
)
from dqx_airflow.values.request import (
    FORMATS,
    JDBC,
    MASK,
    Attempt,
    BatchRequest,
    DatasetField,
    DatasetRef,
    GateOrigin,
    GatePart,
    GateRequest,
    JobRequest,
    Origin,
    ParentRun,
    PartialRun,
    RunKey,
    RunOptions,
    Selection,
    ShadowSuite,
    ValidatedRows,
    day_of_instance,
)
