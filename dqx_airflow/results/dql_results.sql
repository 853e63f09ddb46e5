WITH dql_results AS (
    SELECT stored."dataset_date" AS date, stored."name" AS assertion_name,
           stored."status" = 'passed' AS passed, stored."status" AS status, stored."check",
           stored."gate", stored."suite", stored."severity", stored."value",
           coalesce(CAST({index} AS BIGINT), -1) AS map_index
    FROM stored JOIN (
        SELECT "run_id" AS run FROM (
            SELECT "run_id", row_number() OVER (
                PARTITION BY "gate", "dataset_date", {index} ORDER BY {last}, "run_id"
            ) AS later FROM runs
        ) WHERE later = 1
    ) AS last_runs ON stored."run_id" = last_runs.run
    WHERE stored."status" IN ('passed', 'failed') {counting}
)
