-- Views over a results store, for dashboards and alerts, in the SQL of DuckDB.
--
-- They need the tables `runs`, `results` and `failing_rows`, for example:
--
--   INSTALL delta; LOAD delta;
--   CREATE VIEW runs AS SELECT * FROM delta_scan('s3://lake/dqx/runs');
--
-- The views list their columns, so that new columns of later versions do not change them.

-- One row per run that counts: the last attempt of each gate, date and run of the scheduler.
CREATE OR REPLACE VIEW dqx_runs AS
SELECT
    run_id, gate, dataset_date, scheduler_run, attempt, outcome, suite, contract_id,
    started_at, finished_at, EXTRACT(EPOCH FROM finished_at - started_at) AS seconds,
    assertions, passed, failed, skipped, errors, worst, worst_severity
FROM runs
QUALIFY ROW_NUMBER() OVER (
    PARTITION BY gate, dataset_date, scheduler_run ORDER BY started_at DESC
) = 1;

-- One row per assertion of these runs. An attempt without a row in `runs` did not finish, and is left out.
CREATE OR REPLACE VIEW dqx_results AS
SELECT
    r.run_id, r.gate, r.dataset_date, r.scheduler_run, r.finished_at, r.name, r."check",
    r.status, r.severity, r.datasets, r.expected, r.value, r.scaled_value, r.threshold,
    r.reason, r."column", r.tags, r.clause
FROM results AS r
JOIN dqx_runs AS counted ON counted.run_id = r.run_id;

-- The state of each gate: its last finished run, and the hours since then.
CREATE OR REPLACE VIEW dqx_gates AS
SELECT
    gate, dataset_date, outcome, worst, worst_severity, finished_at, run_id,
    EXTRACT(EPOCH FROM now() - finished_at) / 3600 AS hours_ago
FROM dqx_runs
QUALIFY ROW_NUMBER() OVER (PARTITION BY gate ORDER BY finished_at DESC) = 1;

-- Current failures: the assertions that failed in the last run of each gate, worst first.
CREATE OR REPLACE VIEW dqx_open_failures AS
SELECT r.gate, r.dataset_date, r.name, r.severity, r.status, r.expected, r.value, r.reason
FROM dqx_results AS r
JOIN dqx_gates AS g ON g.run_id = r.run_id
WHERE r.status IN ('failed', 'error')
ORDER BY r.severity, r.gate, r.name;

-- Outcomes per day of data. Only `passed` counts as passed: not evaluated is not passed.
CREATE OR REPLACE VIEW dqx_days AS
SELECT
    gate, dataset_date,
    COUNT(*) AS runs,
    COUNT(*) FILTER (outcome = 'passed') AS passed,
    COUNT(*) FILTER (outcome = 'warned') AS warned,
    COUNT(*) FILTER (outcome = 'blocked') AS blocked,
    COUNT(*) FILTER (outcome = 'broken') AS broken,
    AVG(seconds) AS average_seconds
FROM dqx_runs
GROUP BY gate, dataset_date;

-- Overdue gates: no run for more than twice the median time between their last 30 runs.
-- After a single run, `usual_hours` and `is_overdue` are NULL.
CREATE OR REPLACE VIEW dqx_overdue AS
WITH gaps AS (
    SELECT
        gate,
        EXTRACT(EPOCH FROM finished_at - LAG(finished_at) OVER (
            PARTITION BY gate ORDER BY finished_at
        )) / 3600 AS hours
    FROM dqx_runs
    QUALIFY ROW_NUMBER() OVER (PARTITION BY gate ORDER BY finished_at DESC) <= 30
)
SELECT
    g.gate, g.finished_at AS last_run, g.hours_ago, MEDIAN(gaps.hours) AS usual_hours,
    g.hours_ago > 2 * MEDIAN(gaps.hours) AS is_overdue
FROM dqx_gates AS g
LEFT JOIN gaps ON gaps.gate = g.gate
GROUP BY g.gate, g.finished_at, g.hours_ago;
