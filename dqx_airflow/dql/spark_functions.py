"""The built-in functions of Spark, reviewed one by one: those that SQL in suites may call.

This is an allowlist. A test compares it with the running Spark (`SHOW SYSTEM FUNCTIONS`), so a
function of a new version is rejected until it is reviewed and entered here. `python
tests/engine/functions_of_spark.py` prints what is missing, by version.

Functions are allowed if they depend on their arguments only, or on the clock or chance. They are
rejected if they read files, call an address or code, or reveal the session.
"""

from __future__ import annotations

from difflib import get_close_matches

_ALLOWED = {
    "4.0": """
        abs acos acosh add_months aes_decrypt aes_encrypt aggregate and any any_value
        approx_count_distinct approx_percentile array array_agg array_append array_compact
        array_contains array_distinct array_except array_insert array_intersect array_join
        array_max array_min array_position array_prepend array_remove array_repeat
        array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh atan
        atan2 atanh avg base64 between bigint bin binary bit_and bit_count bit_get
        bit_length bit_or bit_xor bitmap_bit_position bitmap_bucket_number
        bitmap_construct_agg bitmap_count bitmap_or_agg bool_and bool_or boolean bround
        btrim cardinality cast cbrt ceil ceiling char char_length character_length chr
        coalesce collate collation collect_list collect_set concat concat_ws contains conv
        convert_timezone corr cos cosh cot count count_if count_min_sketch covar_pop
        covar_samp crc32 csc cume_dist curdate current_date current_timestamp
        current_timezone date date_add date_diff date_format date_from_unix_date date_part
        date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek
        dayofyear decimal decode degrees dense_rank div double e element_at elt encode
        endswith equal_null every exists exp explode explode_outer expm1 extract factorial
        filter find_in_set first first_value flatten float floor forall format_number
        format_string from_csv from_json from_unixtime from_utc_timestamp get
        get_json_object getbit greatest grouping grouping_id hash hex histogram_numeric
        hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg hour hypot if ifnull
        ilike in initcap inline inline_outer instr int is_valid_utf8 is_variant_null isnan
        isnotnull isnull json_array_length json_object_keys json_tuple kurtosis lag last
        last_day last_value lcase lead least left len length levenshtein like listagg ln
        localtimestamp locate log log10 log1p log2 lower lpad ltrim luhn_check make_date
        make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz
        make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries
        map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with mask
        max md5 mean median min minute mod mode monotonically_increasing_id month monthname
        months_between named_struct nanvl negative next_day not now nth_value ntile nullif
        nullifzero nvl nvl2 octet_length or overlay parse_json parse_url percent_rank
        percentile percentile_approx percentile_cont percentile_disc pi pmod posexplode
        posexplode_outer position positive pow power printf quarter radians rand randn
        random randstr range rank reduce regexp regexp_count regexp_extract
        regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr regr_avgx
        regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
        repeat replace reverse right rint rlike round row_number rpad rtrim schema_of_csv
        schema_of_json schema_of_variant schema_of_variant_agg sec second sentences sequence
        session_window sha sha1 sha2 shiftleft shiftright shiftrightunsigned shuffle sign
        signum sin sinh size skewness slice smallint some sort_array soundex space
        spark_partition_id split split_part sqrt stack startswith std stddev stddev_pop
        stddev_samp str_to_map string string_agg struct substr substring substring_index sum
        tan tanh time timestamp timestamp_micros timestamp_millis timestamp_seconds tinyint
        to_binary to_char to_csv to_date to_json to_number to_timestamp to_timestamp_ltz
        to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar to_xml to_variant_object
        transform transform_keys transform_values translate trim trunc try_add
        try_aes_decrypt try_avg try_divide try_element_at try_make_interval
        try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_mod
        try_multiply try_parse_json try_parse_url try_subtract try_sum try_to_binary
        try_to_date try_to_number try_to_timestamp try_url_decode try_validate_utf8
        try_variant_get typeof ucase unbase64 unhex uniform unix_date unix_micros
        unix_millis unix_seconds unix_timestamp upper url_decode url_encode uuid
        validate_utf8 var_pop var_samp variance variant_explode variant_explode_outer
        variant_get weekday weekofyear when width_bucket window window_time xxhash64 year
        zeroifnull zip_with
    """,
    "4.1": """
        approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate
        bitmap_and_agg current_time kll_merge_agg_bigint kll_merge_agg_double
        kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
        kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
        kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
        kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double
        kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
        kll_sketch_to_string_float make_time quote st_asbinary st_geogfromwkb st_geomfromwkb
        st_setsrid st_srid theta_difference theta_intersection theta_intersection_agg
        theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg time_diff
        time_trunc to_time try_to_time
    """,
    "4.2": """
        is_valid_variant max_by measure min_by time_bucket time_from_micros time_from_millis
        time_from_seconds time_to_micros time_to_millis time_to_seconds
        tuple_difference_double tuple_difference_integer tuple_difference_theta_double
        tuple_difference_theta_integer tuple_intersection_agg_double
        tuple_intersection_agg_integer tuple_intersection_double tuple_intersection_integer
        tuple_intersection_theta_double tuple_intersection_theta_integer
        tuple_sketch_agg_double tuple_sketch_agg_integer tuple_sketch_estimate_double
        tuple_sketch_estimate_integer tuple_sketch_summary_double
        tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
        tuple_union_agg_double tuple_union_agg_integer tuple_union_double
        tuple_union_integer tuple_union_theta_double tuple_union_theta_integer vector_avg
        vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm
        vector_normalize vector_sum
    """,
}
"""The functions by the version of Spark that introduced them: `4.0` for all versions up to it."""

_SYNTAX = """
    character cube dec numeric rollup timestampadd timestampdiff try_cast varchar
"""
"""Syntax that looks like a function call, or a type with a size."""

_REFUSED = {
    "calls methods of Java classes": """
        java_method reflect try_reflect
    """,
    "may open files and URLs named in its XML": """
        xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number
        xpath_short xpath_string
    """,
    "may read a file named in its options or arguments": """
        from_avro from_protobuf from_xml schema_of_avro schema_of_xml to_avro to_protobuf
        to_xml
    """,
    "reveals the session or the account": """
        collations current_catalog current_database current_path current_schema current_user
        python_worker_logs session_user sql_keywords user version
    """,
    "reveals the location of the data, which may contain credentials": """
        input_file_block_length input_file_block_start input_file_name
    """,
    "fails the query, and may put column values into its message": """
        assert_true raise_error
    """,
}
"""The others, by the reason. `from_avro` and `from_protobuf` are represented by a schema,
`from_xml` by an XSD."""

_BARE = frozenset({"current_user", "session_user"})
"""Functions that can be called without parentheses, and are hardly ever the name of a column."""

_KNOWN = frozenset(name for names in (*_ALLOWED.values(), _SYNTAX) for name in names.split())
_REASONS = {name: reason for reason, names in _REFUSED.items() for name in names.split()}

_LONGEST = 60

REVIEWED = frozenset({*_KNOWN, *_REASONS})
"""All functions in this module."""


def objection_to_call(name: str) -> str | None:
    """Why SQL of a suite may not call a function; None if it may.

    >>> objection_to_call("xpath_int")
    'xpath_int() may open files and URLs named in its XML'
    """
    if name in _KNOWN:
        return None
    if name in _REASONS:
        return f"{name}() {_REASONS[name]}"
    near = get_close_matches(name[:_LONGEST], sorted(_KNOWN), n=1, cutoff=0.8)
    meant = f": did you mean {near[0]}()?" if near else ""
    return f"{name}() is not one of Spark's functions that SQL in a suite may call{meant}"


def objection_to_word(name: str) -> str | None:
    """Why SQL of a suite may not contain a word that Spark takes for a call; None if it may."""
    return objection_to_call(name) if name in _BARE else None
