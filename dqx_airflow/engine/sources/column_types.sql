-- The types of the columns of a table or a view, as its database writes them, by the kind of database.
-- A domain has the type that it is made of. SQL Server has none that Spark reads as other values.

-- postgres
SELECT a.attname AS name, of_domain.type
FROM pg_catalog.pg_attribute a
CROSS JOIN LATERAL (
  WITH RECURSIVE base(id, typmod) AS (
    SELECT a.atttypid, a.atttypmod
    UNION ALL
    SELECT t.typbasetype, t.typtypmod
    FROM base JOIN pg_catalog.pg_type t ON t.oid = base.id AND t.typtype = 'd'
  )
  SELECT format_type(base.id, base.typmod) AS type
  FROM base JOIN pg_catalog.pg_type t ON t.oid = base.id AND t.typtype <> 'd'
) of_domain
WHERE a.attrelid = to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped

-- mysql
SELECT COLUMN_NAME AS name, COLUMN_TYPE AS type
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = coalesce({schema}, database()) AND TABLE_NAME = {name}
