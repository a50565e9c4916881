//! Parsing COPY, EXPORT DATABASE, IMPORT DATABASE, CHECKPOINT and BACKUP DATABASE,
//! which the SQL parser does not know as DuckDB's users write them.
//!
//! ```text
//! COPY table [(column, …)] FROM {'file' | ('file', …)} [options]
//! COPY {table [(column, …)] | (query)} TO 'file' [options]
//!      options: [WITH] (option [value], …) | [WITH] CSV [HEADER] [DELIMITER [AS] '|'] …
//! EXPORT DATABASE 'directory' [(option [value], …)]
//! IMPORT DATABASE 'directory'
//! CHECKPOINT
//! BACKUP DATABASE TO 'directory'
//! ```

use crate::error::SqlError;
use crate::plan::files::option_value as constant;
use crate::plan::files::options::{GivenOption, GivenOptions, OptionValue};
use crate::text::parse::{parse_with, position, repair_query};
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{IsOptional, Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Span, Token};

/// A statement about files.
pub(crate) enum FileStatement {
    CopyFrom(CopyFrom),
    CopyTo(CopyTo),
    Export(Export),
    /// A directory.
    Import(String),
    Checkpoint,
    /// A directory.
    Backup(String),
}

impl FileStatement {
    /// The query whose rows are written.
    pub fn query_mut(&mut self) -> Option<&mut Query> {
        match self {
            FileStatement::CopyTo(CopyTo {
                source: CopySource::Query(query),
                ..
            }) => Some(query),
            _ => None,
        }
    }
}

pub(crate) struct CopyFrom {
    pub table: ObjectName,
    pub columns: Vec<Ident>,
    pub files: Vec<String>,
    pub(super) options: GivenOptions,
}

pub(crate) struct CopyTo {
    pub source: CopySource,
    pub file: String,
    pub(super) options: GivenOptions,
}

/// What is copied into a file.
pub(crate) enum CopySource {
    Table(ObjectName, Vec<Ident>),
    Query(Box<Query>),
}

pub(crate) struct Export {
    pub directory: String,
    pub(super) options: GivenOptions,
}

/// The statement, if it is one about files.
///
/// # Errors
/// It is one, but not as it has to be written.
pub(crate) fn parse(statement: &Statement) -> Result<Option<FileStatement>, SqlError> {
    let first = statement
        .text()
        .split(|c: char| !c.is_ascii_alphabetic())
        .next();
    let first = first.unwrap_or_default().to_ascii_uppercase();
    if !matches!(
        first.as_str(),
        "COPY" | "EXPORT" | "IMPORT" | "CHECKPOINT" | "BACKUP"
    ) {
        return Ok(None);
    }
    let mut parsed = parse_with(statement, |parser| {
        parser.next_token();
        let mut places = Vec::new();
        let parsed = match first.as_str() {
            "COPY" => copy(parser, &mut places)?,
            "EXPORT" => {
                word(parser, "DATABASE")?;
                let directory = parser.parse_literal_string()?;
                let options = options(parser, &mut places)?;
                FileStatement::Export(Export { directory, options })
            }
            "CHECKPOINT" => FileStatement::Checkpoint,
            "BACKUP" => {
                word(parser, "DATABASE")?;
                parser.expect_keyword_is(Keyword::TO)?;
                FileStatement::Backup(parser.parse_literal_string()?)
            }
            _ => {
                word(parser, "DATABASE")?;
                FileStatement::Import(parser.parse_literal_string()?)
            }
        };
        Ok((parsed, places))
    })?;
    let options = match &mut parsed.0 {
        FileStatement::CopyFrom(copy) => &mut copy.options,
        FileStatement::CopyTo(copy) => &mut copy.options,
        FileStatement::Export(export) => &mut export.options,
        FileStatement::Import(_) | FileStatement::Checkpoint | FileStatement::Backup(_) => {
            return Ok(Some(parsed.0));
        }
    };
    for (given, span) in options.0.iter_mut().zip(parsed.1) {
        given.place = Some(statement.excerpt(position(span.start)));
    }
    match parsed.0 {
        FileStatement::CopyTo(CopyTo {
            source: CopySource::Query(query),
            file,
            options,
        }) => Ok(Some(FileStatement::CopyTo(CopyTo {
            source: CopySource::Query(Box::new(repair_query(*query)?)),
            file,
            options,
        }))),
        other => Ok(Some(other)),
    }
}

fn copy(parser: &mut Parser<'_>, places: &mut Vec<Span>) -> Result<FileStatement, ParserError> {
    if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        parser.expect_keyword_is(Keyword::TO)?;
        let file = target(parser)?;
        let options = options(parser, places)?;
        let source = CopySource::Query(query);
        return Ok(FileStatement::CopyTo(CopyTo {
            source,
            file,
            options,
        }));
    }
    let table = parser.parse_object_name(false)?;
    let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false)?;
    if parser.parse_keyword(Keyword::FROM) {
        let files = files(parser)?;
        let options = options(parser, places)?;
        return Ok(FileStatement::CopyFrom(CopyFrom {
            table,
            columns,
            files,
            options,
        }));
    }
    if !parser.parse_keyword(Keyword::TO) {
        return parser.expected("FROM or TO", parser.peek_token());
    }
    let file = target(parser)?;
    let options = options(parser, places)?;
    let source = CopySource::Table(table, columns);
    Ok(FileStatement::CopyTo(CopyTo {
        source,
        file,
        options,
    }))
}

/// The file that is written: a name or STDOUT.
fn target(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    match parser.parse_keyword(Keyword::STDOUT) {
        true => Ok("/dev/stdout".to_owned()),
        false => file(parser),
    }
}

fn file(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let next = parser.peek_token();
    match next.token {
        Token::SingleQuotedString(_) => parser.parse_literal_string(),
        _ => parser.expected("the name of a file in single quotes", next),
    }
}

fn files(parser: &mut Parser<'_>) -> Result<Vec<String>, ParserError> {
    let close = match parser.peek_token().token {
        Token::LParen => Token::RParen,
        Token::LBracket => Token::RBracket,
        _ if parser.parse_keyword(Keyword::STDIN) => return Ok(vec!["/dev/stdin".to_owned()]),
        _ => return Ok(vec![file(parser)?]),
    };
    parser.next_token();
    let files = parser.parse_comma_separated(file)?;
    parser.expect_token(&close)?;
    Ok(files)
}

fn word(parser: &mut Parser<'_>, wanted: &str) -> Result<(), ParserError> {
    let next = parser.peek_token();
    match &next.token {
        Token::Word(word) if word.value.eq_ignore_ascii_case(wanted) => {
            parser.next_token();
            Ok(())
        }
        _ => parser.expected(wanted, next),
    }
}

/// GivenOptions in parentheses, or as PostgreSQL had them before: a list of words.
fn options(parser: &mut Parser<'_>, places: &mut Vec<Span>) -> Result<GivenOptions, ParserError> {
    let mut options = GivenOptions::default();
    let with = parser.parse_keyword(Keyword::WITH);
    if parser.consume_token(&Token::LParen) {
        loop {
            let (name, span) = option_name(parser)?;
            // Some write an equals sign.
            let _ = parser.consume_token(&Token::Eq);
            let value = match parser.peek_token().token {
                Token::Comma | Token::RParen => OptionValue::Absent,
                _ => option_value(parser)?,
            };
            places.push(span);
            options.0.push(GivenOption {
                name,
                value,
                place: None,
            });
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
        return Ok(options);
    }
    let mut any = false;
    while matches!(parser.peek_token().token, Token::Word(_)) {
        let (name, span) = option_name(parser)?;
        let (name, value) = match name.as_str() {
            "csv" => ("format".to_owned(), OptionValue::Text("csv".into())),
            "header" => (name, OptionValue::Absent),
            _ => {
                let _ = parser.parse_keyword(Keyword::AS);
                (name, option_value(parser)?)
            }
        };
        places.push(span);
        options.0.push(GivenOption {
            name,
            value,
            place: None,
        });
        any = true;
    }
    if with && !any {
        return parser.expected("options behind WITH", parser.peek_token());
    }
    Ok(options)
}

fn option_name(parser: &mut Parser<'_>) -> Result<(String, Span), ParserError> {
    let next = parser.next_token();
    match next.token {
        Token::Word(word) => Ok((word.value.to_ascii_lowercase(), next.span)),
        _ => parser.expected("the name of an option", next),
    }
}

fn option_value(parser: &mut Parser<'_>) -> Result<OptionValue, ParserError> {
    let next = parser.peek_token();
    // Words such as `true` or `gzip`; among them are keywords with which no expression begins.
    if let Token::Word(word) = &next.token
        && !matches!(
            word.keyword,
            Keyword::TRUE | Keyword::FALSE | Keyword::ARRAY
        )
        && !word.value.eq_ignore_ascii_case(crate::text::parse::STRUCT)
    {
        parser.next_token();
        return Ok(OptionValue::Text(word.value.clone()));
    }
    let expr = parser.parse_expr()?;
    match constant(&expr) {
        Some(value) => Ok(value),
        None => parser.expected("a constant", next),
    }
}
