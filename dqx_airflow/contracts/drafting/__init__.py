"""A first contract from the current contents of a table: observed, drafted, written in a dialect.

An observation is not a promise: a draft is a proposal, and says so.
"""

from __future__ import annotations

from dqx_airflow.contracts.drafting.draft import draft
from dqx_airflow.contracts.drafting.observed import ObservedColumn, ObservedTable
from dqx_airflow.contracts.drafting.written_draft import DIALECTS, draft_text

__all__ = ["DIALECTS", "ObservedColumn", "ObservedTable", "draft", "draft_text"]
