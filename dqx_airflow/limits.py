"""How much is kept and shown."""

from __future__ import annotations

DEFAULT_SAMPLE_ROWS = 20
"""The default number of failing rows kept for each assertion."""

MOST_SAMPLE_ROWS = 1000
"""A sample larger than this is no sample: that is what a quarantine is for."""

DEFAULT_MOST_GROUPS = 10_000
"""The maximum number of groups of an assertion, unless `@max_groups` allows more."""

MOST_GROUPS = 1_000_000
"""`@max_groups` allows no more: the groups are judged in one process."""

LONGEST_KEPT_SOURCE = 256 * 1024
"""A suite or a contract with more characters is not kept with the results."""
