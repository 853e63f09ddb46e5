SELECT * FROM (
    SELECT *, row_number() OVER (
        PARTITION BY "gate", "dataset_date", "scheduler_run"
        ORDER BY {last}, "attempt" DESC, "run_id"
    ) AS later_attempts FROM (
        SELECT *, row_number() OVER (
            PARTITION BY "gate", "dataset_date", "scheduler_run", "attempt_id"
            ORDER BY {answered}"finished_at", "run_id"
        ) AS earlier_reports FROM ({rows})
    ) WHERE earlier_reports = 1
) WHERE later_attempts = 1
