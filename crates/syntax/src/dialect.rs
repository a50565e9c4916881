//! The SQL that Eris reads: PostgreSQL's, with what people know from DuckDB.
//!
//! The parser asks a dialect by its methods, and here and there by its type. Such questions get PostgreSQL's type.

use crate::define;
use sqlparser::ast::{ColumnOption, Statement};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use std::any::TypeId;

/// The dialect.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErisDialect;

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

/// What PostgreSQL's dialect says.
macro_rules! as_postgres {
    ($($method:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {$(
        fn $method(&self, $($argument: $type),*) -> $result {
            POSTGRES.$method($($argument),*)
        }
    )+};
}

/// What DuckDB has beside it.
macro_rules! supported {
    ($($method:ident)+) => {$(
        fn $method(&self) -> bool {
            true
        }
    )+};
}

impl Dialect for ErisDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        define::sequence(parser)
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        let option = define::generated(parser)?;
        Ok(option.map(|option| Ok(Some(option))))
    }

    /// A question mark is a parameter, also right behind an operator.
    fn is_custom_operator_part(&self, ch: char) -> bool {
        ch != '?' && POSTGRES.is_custom_operator_part(ch)
    }

    as_postgres! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_delimited_identifier_start(ch: char) -> bool;
        is_identifier_start(ch: char) -> bool;
        is_identifier_part(ch: char) -> bool;
        is_reserved_for_identifier(keyword: Keyword) -> bool;
        get_next_precedence(parser: &Parser) -> Option<Result<u8, ParserError>>;
        prec_value(precedence: Precedence) -> u8;
        supports_unicode_string_literal() -> bool;
        supports_filter_during_aggregation() -> bool;
        supports_group_by_expr() -> bool;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_factorial_operator() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_comment_on() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_colon_operator() -> bool;
        supports_empty_projections() -> bool;
        supports_nested_comments() -> bool;
        supports_string_escape_constant() -> bool;
        supports_numeric_literal_underscores() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_set_names() -> bool;
        supports_alter_column_type_using() -> bool;
        supports_notnull_operator() -> bool;
        supports_interval_options() -> bool;
        supports_insert_table_alias() -> bool;
        supports_create_table_like_parenthesized() -> bool;
        supports_select_wildcard_with_alias() -> bool;
        supports_comma_separated_trim() -> bool;
    }

    supported! {
        supports_from_first_select
        supports_lambda_functions
        supports_select_wildcard_exclude
        supports_select_wildcard_replace
        supports_select_wildcard_rename
        supports_projection_trailing_commas
        supports_named_fn_args_with_assignment_operator
        supports_window_function_null_treatment_arg
    }
}
