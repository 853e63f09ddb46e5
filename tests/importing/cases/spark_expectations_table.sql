INSERT INTO lake.rules VALUES
  ('shop', 'lake.orders', 'row_dq', 'id_present', 'id', 'id is not null', 'drop', 'completeness', 'An id', true, true, true, false, 0),
  ('shop', 'lake.orders', 'agg_dq', 'some_rows', '', 'count(*) > 0', 'fail', 'completeness', 'Rows', true, false, true, false, 0, null, null, 'high');
INSERT INTO lake.rules (rule, rule_type, table_name, product_id, expectation, is_active)
VALUES ('positive', 'row_dq', 'lake.lines', 'shop', 'price > 0', false);
INSERT INTO lake.rules (RULE, RULE_TYPE, TABLE_NAME, EXPECTATION, IS_ACTIVE)
VALUES ('quoted', 'row_dq', 'lake.lines', "status = 'paid'", true), ('doubled', 'row_dq', 'lake.lines', 'status = ''paid''', true);
INSERT INTO lake.rules SELECT * FROM lake.other_rules WHERE rule_type = 'row_dq';
MERGE INTO lake.rules USING lake.other_rules AS o ON rules.rule = o.rule WHEN NOT MATCHED THEN INSERT *;
