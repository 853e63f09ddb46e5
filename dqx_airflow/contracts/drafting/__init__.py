"""A first contract from what a table holds today: observed, drafted, written in a dialect.

What was there is not what is promised: a draft is a proposal, and says so.
"""

from __future__ import annotations

from dqx_airflow.contracts.drafting.draft import draft
from dqx_airflow.contracts.drafting.observed import ObservedColumn, ObservedTable
from dqx_airflow.contracts.drafting.written_draft import DIALECTS, draft_text

__all__ = ["DIALECTS", "ObservedColumn", "ObservedTable", "draft", "draft_text"]
