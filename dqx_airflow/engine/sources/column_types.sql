-- The types of the columns of a table or a view, as its database writes them, by the kind of database.
-- A domain has the type that it is made of. SQL Server has none that Spark reads as other values.

-- postgres
SELECT a.attname AS name,
       CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)
            ELSE format_type(a.atttypid, a.atttypmod) END AS type
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped

-- mysql
SELECT COLUMN_NAME AS name, COLUMN_TYPE AS type
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = coalesce({schema}, database()) AND TABLE_NAME = {name}
