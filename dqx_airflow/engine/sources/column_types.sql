-- The types of the columns of a table or a view, as its database writes them, by the kind of database. PostgreSQL: also as
-- they are written there (a domain and the items of an array have the type that the domain is made of), the declared
-- number of dimensions, and whether policies hide rows from the role. SQL Server has none that Spark reads as other values.

-- postgres
SELECT a.attname AS name, of_base.type, format_type(a.atttypid, a.atttypmod) AS written, of_base.dimensions,
       row_security_active(a.attrelid) AS hides_rows
FROM pg_catalog.pg_attribute a
CROSS JOIN LATERAL (
  WITH RECURSIVE base(id, typmod, dimensions, items) AS (
    SELECT a.atttypid, a.atttypmod, a.attndims, ''
    UNION ALL
    SELECT CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.typelem END,
           CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE -1 END,
           CASE WHEN base.items = '' THEN greatest(base.dimensions, t.typndims) ELSE base.dimensions END,
           CASE WHEN t.typtype = 'd' THEN base.items ELSE base.items || '[]' END
    FROM base
    JOIN pg_catalog.pg_type t ON t.oid = base.id
    LEFT JOIN pg_catalog.pg_type item ON item.oid = t.typelem AND t.typcategory = 'A' AND item.typtype = 'd'
    WHERE t.typtype = 'd' OR item.oid IS NOT NULL
  )
  SELECT format_type(base.id, base.typmod) || base.items AS type, base.dimensions
  FROM base
  JOIN pg_catalog.pg_type t ON t.oid = base.id AND t.typtype <> 'd'
  LEFT JOIN pg_catalog.pg_type item ON item.oid = t.typelem AND t.typcategory = 'A' AND item.typtype = 'd'
  WHERE item.oid IS NULL
) of_base
WHERE a.attrelid = to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped

-- mysql
SELECT COLUMN_NAME AS name, COLUMN_TYPE AS type
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = coalesce({schema}, database()) AND TABLE_NAME = {name}
