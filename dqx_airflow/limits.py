"""The limits and defaults of numbers, days and durations that users set in options, arguments,
annotations and settings.

A limit on our own work, such as the lines of a message, is in the module that does it.
"""

from __future__ import annotations

from datetime import timedelta

DEFAULT_SAMPLE_ROWS = 20
"""The default number of failing rows kept for each assertion."""

MOST_SAMPLE_ROWS = 1000
"""The maximum size of a sample; a quarantine keeps all failing rows."""

DEFAULT_MOST_GROUPS = 10_000
"""The maximum number of groups of an assertion, unless `@max_groups` allows more."""

MOST_GROUPS = 1_000_000
"""The maximum for `@max_groups`: groups are judged in one process."""

MOST_DAYS = 36_525
"""The maximum for a number of days in settings, a century: dates end with the year 9999."""

LONGEST_TIME_S = MOST_DAYS * 86_400
"""The maximum for a time limit in seconds."""

MOST_LISTED = 1_000_000
"""The maximum for a number of rows to show or to sample."""

MOST_CALLS_PER_MONTH = 1_000_000
"""The maximum for the calls that a team takes for a whole lake."""

LARGEST_ID = 2**63 - 1
"""The maximum for numeric ids, as Delta, Iceberg and databases store them."""

LARGEST_MAP_INDEX = 999_999_999
"""The maximum for the map index of a task instance."""

MOST_CLOCK_SKEW_HOURS = MOST_DAYS * 24
"""The maximum for `max_clock_skew_hours`."""

DEFAULT_CLOCK_SKEW_HOURS = 24.0
"""How far in the future a timestamp may be that makes data fresh."""

MOST_DATES = 1_000
"""The maximum number of dates in one run."""

LONGEST_WAIVER = timedelta(days=30)
"""The maximum duration of a waiver, unless its author requests more."""

LEAST_KEPT = timedelta(days=1)
"""The minimum age of files that `dql results vacuum` removes: no reader uses a version of the store
for longer."""

MOST_COLLECTED_BYTES = 1_000_000_000
"""The most data, in memory, that the process of a gate takes from Sail to write it to a target or a
quarantine."""
