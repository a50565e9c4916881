//! DataFusion made exact: what Eris repairs of it, so that an upgrade of DataFusion touches one crate.
//!
//! ```text
//! doors ─ sql ─┬─[exact]── DataFusion
//!              ├─ files
//!              └─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! [`session_config`], [`physical_rules`] and [`session_state`] give DataFusion's settings, rules and functions with
//! all repairs in place. `sql` inserts its own rules among them, which move work into scans. Every module of the table
//! says which behaviour of DataFusion it **stands for**, or what it **adds**. A module goes when DataFusion does the
//! same by itself. The other modules put the repairs together, or serve several of them.
//!
//! | module | what it repairs |
//! |---|---|
//! | `arithmetic::{rule, checked}` | `+`, `-`, `*` and negation fail instead of wrapping around |
//! | `arithmetic::division` | division of DECIMAL gives DOUBLE instead of a few digits |
//! | `arithmetic::date` | a date and an interval make a timestamp |
//! | `arithmetic::interval` | the difference of timestamps is an interval; `*` and `/` of intervals |
//! | `arithmetic::double` | a DECIMAL becomes the nearest DOUBLE |
//! | `arithmetic::digits` | a number that is rounded to more digits than it has stays |
//! | `arithmetic::rounding` | a cast to an integer rounds instead of dropping the fraction |
//! | `arithmetic::real` | a cast of a DOUBLE to REAL fails instead of becoming infinite |
//! | `arithmetic::timestamp_string` | a timestamp as a string has a blank between day and time |
//! | `datetime::age` | adds `age` |
//! | `datetime::bin` | `date_bin` rejects a width of nothing or less |
//! | `datetime::bucket` | adds `time_bucket` |
//! | `datetime::difference` | adds `date_diff` and `date_sub` |
//! | `datetime::epoch` | the seconds of an interval are those of years of 365¼ days |
//! | `datetime::to_char` | `to_char` has PostgreSQL's patterns |
//! | `datetime::series` | a series of timestamps is a table |
//! | `datetime::strptime` | adds `strptime` and `try_strptime` |
//! | `datetime::ticks` | adds `epoch_ms`, `epoch_us` and `epoch_ns` |
//! | `datetime::truncated` | `date_trunc` takes any timestamp, and any part of a calendar |
//! | `datetime::with_seconds` | a timestamp may be written without seconds |
//! | `comparison::coalesce` | `coalesce` and `ifnull` take any type |
//! | `comparison::nested` | NULL within a struct or list is greater than anything |
//! | `comparison::common_type` | types that have nothing in common do not become one |
//! | `comparison::pattern` | `SIMILAR TO` is SQL's |
//! | `comparison::quantified` | ANY and ALL work everywhere |
//! | `comparison::values` | DOUBLE beside DECIMAL in VALUES is DOUBLE, TIMESTAMP beside DATE is TIMESTAMP |
//! | `comparison::zero` | -0.0 and 0.0 are one value to sort by |
//! | `comparison::nan` | all NaN are one value, greater than any number |
//! | `comparison::mixed` | DECIMAL beside DOUBLE is DOUBLE, DATE beside TIMESTAMP is TIMESTAMP |
//! | `comparison::timestamp` | a timestamp is compared with all digits of a constant |
//! | `comparison::in_list` | CASE in a list of IN has the value that it has in the row |
//! | `comparison::interval` | intervals are compared by how long they are |
//! | `comparison::interval_keys` | intervals sort, group and join by how long they are |
//! | `comparison::membership` | `IN (SELECT …)` is NULL where SQL says so |
//! | `correlated` | subqueries that refer to rows around them are joins, whatever they contain |
//! | `correlated::join_condition` | subqueries may stand in ON |
//! | `aggregate::sum` | SUM fails instead of wrapping around, and only if the whole sum does not fit |
//! | `aggregate::average` | AVG of DECIMAL is a DOUBLE instead of a few digits |
//! | `aggregate::interval_total` | SUM of intervals fails instead of wrapping, and they have an AVG |
//! | `aggregate::cast_names` | aggregates that differ by a cast have names that differ |
//! | `aggregate::extreme` | `max` and `min` of groups know that NaN is greatest |
//! | `aggregate::nested_extreme` | `max` and `min` of structs and lists heed those with a NULL in them |
//! | `aggregate::extreme_row` | adds `max_by` and `min_by` |
//! | `aggregate::mode` | adds `mode` |
//! | `aggregate::group_keys` | groups by a key that was unique before a join keep all their columns |
//! | `aggregate::ordered_list` | `array_agg` heeds its order beside others |
//! | `aggregate::grouping_sets` | keys of grouping sets may be any expression |
//! | `aggregate::repeated_keys` | a sort key may be named twice |
//! | `aggregate::held_filter` | a condition without columns stays above an aggregate |
//! | `aggregate::single_distinct` | `count(DISTINCT x)` beside a sum of decimals |
//! | `join::asof` | adds ASOF joins |
//! | `join::null_keys` | `IS NOT DISTINCT FROM` and `=` are keys of different joins |
//! | `join::hash` | the table of a hash join is made by all threads |
//! | `join::sides` | the side with fewer rows is the build side |
//! | `join::spilling` | a hash join goes on in files when its build side does not fit, and tells its keys |
//! | `join::same_names` | a join's filter does not reach another column of the same name |
//! | `join::yielding` | a join that produces many rows can be cancelled |
//! | `memory::pool` | tables and operators share one budget, and spilling never starves |
//! | `memory::cut` | batches of wide rows are cut by bytes |
//! | `memory::growth` | what a function makes has room before it is made |
//! | `memory::concatenation` | what `\|\|` makes has room before it is made |
//! | `memory::string_agg` | the groups of `string_agg` are handed on without having them twice |
//! | `memory::view_keys` | strings that are grouped or counted are in blocks |
//! | `memory::windows` | window functions account for the input that they keep |
//! | `memory::spill` | spilled files have a limit, are counted, and never outlive their process for long |
//! | `no_columns` | rows without columns can be sorted |
//! | `sort` | numbers are sorted by one number for each row |
//! | `sort_keys` | rows can be sorted by any expression without `IN (SELECT …)` |
//! | `formatting` | adds `printf` and `format` |
//! | `hash` | adds `hash` |
//! | `lists` | the length of a list is that of the list, not of its text |
//! | `replaced` | `* REPLACE` knows its columns |
//! | [`text`] | values of some types are read and shown as SQL writes them |
//! | [`types`] | SQL's names of types are those that Eris stores |
//! | `state` | settings whose defaults are wrong or slow |
//!
//! Repairs that are made in the syntax tree, before DataFusion resolves names, are `sql`'s: named windows, `EXCEPT
//! ALL`, the precedence of `IS DISTINCT FROM`, other names of functions. They say how a statement reads, they fail
//! with errors that name places in its text, and they do not change with DataFusion's plans.
//!
//! This crate must not know the catalogue, statements, sessions or the engine. It knows `fragment` for two reasons: an
//! overflow is the same error wherever an expression is evaluated, and constants travel between the two ([`scalar`]).

#![forbid(unsafe_code)]

mod aggregate;
mod arithmetic;
mod columns;
mod comparison;
mod correlated;
mod counting;
mod datetime;
mod formatting;
mod hash;
mod held;
mod join;
mod lists;
mod memory;
mod no_columns;
mod once;
mod replaced;
mod replacement;
mod rules;
pub mod scalar;
mod signed_rank;
mod sort;
mod sort_keys;
mod state;
pub mod text;
pub mod types;
mod walk;
mod window;
mod written;

pub use arithmetic::rounding::before_cast;
pub use comparison::common_type::{MixedTypes, common_type};
pub use comparison::nan::{one_nan, one_nan_in_rows};
pub use counting::counted_input;
pub use join::asof::ASOF;
pub use join::hash::{in_key_order, on_threads};
pub use join::spilling::KeySetExpr;
pub use memory::cut::{batch_rows, with_batch_rows};
pub use memory::spill::{Spill, SpillError};
pub use once::OnceExec;
pub use replaced::REPLACED;
pub use replacement::Replacement;
pub use rules::{PhysicalRule, insert_before, physical_rules};
pub use state::{plan_statement, session_config, session_state};
