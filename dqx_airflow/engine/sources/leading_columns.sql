-- The leading columns of the indexes of a table, by the kind of database, the best first by `rank`.
-- A read-only role sees them here, but not in PostgreSQL's information schema.

-- postgres
SELECT a.attname AS name, CASE WHEN i.indisprimary THEN 0 WHEN i.indisunique THEN 1 ELSE 2
       END AS rank
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = to_regclass({table}) AND i.indisvalid AND i.indpred IS NULL

-- mysql
SELECT COLUMN_NAME AS name, CASE WHEN INDEX_NAME = 'PRIMARY' THEN 0 ELSE 1 + NON_UNIQUE END
       AS `rank`
FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = coalesce({schema}, database()) AND TABLE_NAME = {name}
  AND SEQ_IN_INDEX = 1

-- mssql
SELECT c.name AS name, CASE WHEN i.is_primary_key = 1 THEN 0 WHEN i.is_unique = 1 THEN 1
       ELSE 2 END AS rank
FROM sys.indexes i
JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id
JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
WHERE i.object_id = OBJECT_ID({table}) AND k.key_ordinal = 1 AND i.has_filter = 0
