//! The functions that have another name here, or are expressions over others.

/// Other names of functions, with the same arguments.
pub(super) const NAMES: [(&str, &str); 31] = [
    ("sign", "signum"),
    ("variance", "var_samp"),
    ("first", "first_value"),
    ("arbitrary", "first_value"),
    ("last", "last_value"),
    ("approx_count_distinct", "approx_distinct"),
    ("regexp_matches", "regexp_like"),
    ("list_value", "make_array"),
    ("prefix", "starts_with"),
    ("suffix", "ends_with"),
    ("string_split", "string_to_array"),
    ("str_split", "string_to_array"),
    ("ucase", "upper"),
    ("lcase", "lower"),
    ("unicode", "ascii"),
    ("ord", "ascii"),
    ("instr", "strpos"),
    ("datepart", "date_part"),
    ("datetrunc", "date_trunc"),
    ("listagg", "string_agg"),
    ("group_concat", "string_agg"),
    ("every", "bool_and"),
    ("list", "array_agg"),
    ("gen_random_uuid", "uuid"),
    ("approx_quantile", "approx_percentile_cont"),
    ("len", "length"),
    ("list_min", "array_min"),
    ("list_apply", "array_transform"),
    ("array_apply", "array_transform"),
    ("apply", "array_transform"),
    ("filter", "array_filter"),
];

/// Functions of as many arguments as the highest number, as expressions over them.
pub(super) const EXPRESSIONS: [(&str, &str); 56] = [
    ("year", "date_part('year', $1)"),
    ("quarter", "date_part('quarter', $1)"),
    ("month", "date_part('month', $1)"),
    ("week", "date_part('week', $1)"),
    ("weekofyear", "date_part('week', $1)"),
    ("day", "date_part('day', $1)"),
    ("dayofmonth", "date_part('day', $1)"),
    ("dayofweek", "date_part('dow', $1)"),
    ("weekday", "date_part('dow', $1)"),
    ("dayofyear", "date_part('doy', $1)"),
    ("hour", "date_part('hour', $1)"),
    ("minute", "date_part('minute', $1)"),
    ("second", "CAST(floor(date_part('second', $1)) AS BIGINT)"),
    ("epoch", "date_part('epoch', $1)"),
    ("decade", "(date_part('year', $1) / 10)"),
    ("century", "((date_part('year', $1) + 99) / 100)"),
    ("millennium", "((date_part('year', $1) + 999) / 1000)"),
    ("dayname", "strftime($1, '%A')"),
    ("monthname", "strftime($1, '%B')"),
    (
        "last_day",
        "CAST(date_trunc('month', $1) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)",
    ),
    (
        "date_diff_year",
        "date_part('year', $2) - date_part('year', $1)",
    ),
    (
        "date_diff_quarter",
        "4 * (date_part('year', $2) - date_part('year', $1)) + date_part('quarter', $2) - date_part('quarter', $1)",
    ),
    (
        "date_diff_month",
        "12 * (date_part('year', $2) - date_part('year', $1)) + date_part('month', $2) - date_part('month', $1)",
    ),
    (
        "date_diff_week",
        "(CAST(date_trunc('week', $2) AS DATE) - CAST(date_trunc('week', $1) AS DATE)) / 7",
    ),
    ("date_diff_day", "CAST($2 AS DATE) - CAST($1 AS DATE)"),
    (
        "date_diff_hour",
        "CAST((date_part('epoch', date_trunc('hour', CAST($2 AS TIMESTAMP))) - date_part('epoch', date_trunc('hour', CAST($1 AS TIMESTAMP)))) / 3600 AS BIGINT)",
    ),
    (
        "date_diff_minute",
        "CAST((date_part('epoch', date_trunc('minute', CAST($2 AS TIMESTAMP))) - date_part('epoch', date_trunc('minute', CAST($1 AS TIMESTAMP)))) / 60 AS BIGINT)",
    ),
    (
        "date_diff_second",
        "CAST(date_part('epoch', date_trunc('second', CAST($2 AS TIMESTAMP))) - date_part('epoch', date_trunc('second', CAST($1 AS TIMESTAMP))) AS BIGINT)",
    ),
    ("if", "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("iff", "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("mod", "($1 % $2)"),
    ("xor", "($1 # $2)"),
    ("count_if", "count(*) FILTER (WHERE $1)"),
    (
        "regexp_extract",
        "CASE WHEN $1 IS NULL THEN NULL ELSE coalesce(array_element(regexp_match($1, '(' || $2 || ')'), 1), '') END",
    ),
    (
        "regexp_extract",
        "CASE WHEN $1 IS NULL THEN NULL ELSE coalesce(array_element(regexp_match($1, '(' || $2 || ')'), $3 + 1), '') END",
    ),
    ("isodow", "date_part('isodow', $1)"),
    ("strptime", "CAST(to_timestamp($1, $2) AS TIMESTAMP)"),
    ("sha256", "encode(sha256($1), 'hex')"),
    (
        "epoch_ms",
        "CAST(round(1000 * date_part('epoch', $1)) AS BIGINT)",
    ),
    (
        "epoch_us",
        "CAST(round(1000000 * date_part('epoch', $1)) AS BIGINT)",
    ),
    (
        "make_timestamp",
        "(CAST(make_date($1, $2, $3) AS TIMESTAMP) + CAST($4 || ' hours ' || $5 || ' minutes ' || $6 || ' seconds' AS INTERVAL))",
    ),
    // Buckets of days begin with a Monday.
    ("time_bucket", "date_bin($1, $2, TIMESTAMP '2000-01-03')"),
    (
        "time_bucket_of_months",
        "date_bin($1, $2, TIMESTAMP '2000-01-01')",
    ),
    (
        "list_count",
        "CAST(cardinality(array_compact($1)) AS BIGINT)",
    ),
    (
        "list_unique",
        "CAST(cardinality(array_distinct(array_compact($1))) AS UBIGINT)",
    ),
    ("list_distinct", "array_distinct(array_compact($1))"),
    ("list_sort", "array_sort($1, 'ASC', 'NULLS LAST')"),
    ("list_sort", "array_sort($1, $2, 'NULLS LAST')"),
    ("list_reverse_sort", "array_sort($1, 'DESC', 'NULLS LAST')"),
    ("list_first", "array_element($1, 1)"),
    ("list_last", "array_element($1, -1)"),
    ("list_string_agg", "array_to_string($1, ',')"),
    ("list_string_agg", "array_to_string($1, $2)"),
    (
        "quantile_disc",
        "array_element(array_agg($1 ORDER BY $1) FILTER (WHERE $1 IS NOT NULL), greatest(1, CAST(ceil($2 * count($1)) AS BIGINT)))",
    ),
    ("age", "age(CAST($1 AS TIMESTAMP), CAST($2 AS TIMESTAMP))"),
    (
        "age",
        "age(CAST(current_date AS TIMESTAMP), CAST($1 AS TIMESTAMP))",
    ),
];

/// Other names of what is written as an expression.
pub(super) const SAME: [(&str, &str); 6] = [
    ("countif", "count_if"),
    ("array_distinct", "list_distinct"),
    ("array_sort", "list_sort"),
    ("array_reverse_sort", "list_reverse_sort"),
    ("array_unique", "list_unique"),
    ("quantile", "quantile_disc"),
];
