//! Definitions that are made again when a database is opened, where that is not what CREATE does.

use super::create_table;
use super::references::{self, WrittenKey};
use super::sequence::course;
use crate::catalog::{RelationName, SCHEMA, Sequence, TableOrView, View, ViewDependency};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::parse::{after_as, parse_with};
use crate::text::statement::Statement;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::sql::sqlparser::ast::{self, CreateTable, CreateView, TableConstraint};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{IsOptional, Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use std::sync::Arc;

/// Foreign keys of a table, which are added when all tables are there.
pub(crate) struct LateKeys {
    table: RelationName,
    keys: Vec<WrittenKey>,
    statement: Statement,
}

/// Makes a table without its foreign keys; these, if it has some.
pub(crate) async fn table(
    context: &StatementContext,
    mut create: CreateTable,
    statement: &Statement,
) -> Result<Option<LateKeys>, SqlError> {
    let table = context.resolve(&create.name, statement)?;
    let is_foreign =
        |constraint: &mut TableConstraint| matches!(constraint, TableConstraint::ForeignKey(_));
    let foreign = create.constraints.extract_if(.., is_foreign);
    let keys = foreign.filter_map(|constraint| match constraint {
        TableConstraint::ForeignKey(key) => Some(WrittenKey::of_table(&key, statement)),
        _ => None,
    });
    let keys: Vec<WrittenKey> = keys.collect::<Result<_, _>>()?;
    create_table::create(context, create, statement).await?;
    Ok((!keys.is_empty()).then(|| LateKeys {
        table,
        keys,
        statement: statement.clone(),
    }))
}

impl LateKeys {
    /// Each of them for itself.
    pub fn each(self) -> impl Iterator<Item = LateKeys> {
        let LateKeys {
            table,
            keys,
            statement,
        } = self;
        keys.into_iter().map(move |key| LateKeys {
            table: table.clone(),
            keys: vec![key],
            statement: statement.clone(),
        })
    }

    /// Adds them. The rows have kept them.
    pub async fn add(&self, context: &StatementContext) -> Result<(), SqlError> {
        let mut change = context.catalog.change().await;
        let table = change.table(&self.table).expect("it was made before");
        let mut definition = table.definition();
        for key in &self.keys {
            references::add(context, &mut definition, key, &self.statement)?;
        }
        let table = table.redefined(definition)?;
        change.put(TableOrView::Table(Arc::new(table)));
        change.commit().await
    }
}

/// A column, by its table.
type ColumnName = (RelationName, String);

/// Makes a sequence; this with its column, if it has one.
pub(crate) async fn sequence(
    context: &StatementContext,
    tree: ast::Statement,
    statement: &Statement,
) -> Result<Option<(ColumnName, Arc<Sequence>)>, SqlError> {
    let ast::Statement::CreateSequence {
        name,
        sequence_options,
        owned_by,
        ..
    } = tree
    else {
        unreachable!("called for CREATE SEQUENCE only");
    };
    let course = course(&sequence_options, &DataType::Int64)?;
    let sequence = Sequence::new(context.resolve(&name, statement)?, course);
    let mut change = context.catalog.change().await;
    if !change.has_schema(&sequence.name.schema) {
        return Err(no_schema(&sequence.name));
    }
    change.put_sequence(Arc::clone(&sequence));
    change.commit().await?;
    let Some(mut owner) = owned_by else {
        return Ok(None);
    };
    let column = owner.0.pop();
    let column = column.as_ref().and_then(|part| part.as_ident());
    let column = column.map(normalize).unwrap_or_default();
    let table = context.resolve(&owner, statement)?;
    Ok(Some(((table, column), sequence)))
}

fn no_schema(name: &RelationName) -> SqlError {
    let message = format!("schema \"{}\" does not exist", name.schema);
    SqlError::invalid(Mistake::UndefinedSchema, message)
}

/// The columns of a view, and those that it knows of what it reads.
pub(crate) struct ViewColumns {
    fields: Vec<Field>,
    reads: Vec<(ast::ObjectName, Vec<String>)>,
}

/// What `VIEW (column 'type' [NOT NULL], …) [READS relation (column, …), …]` says; `None` of other statements.
pub(crate) fn columns_of_view(statement: &Statement) -> Result<Option<ViewColumns>, SqlError> {
    if !statement.text().starts_with("VIEW (") {
        return Ok(None);
    }
    parse_with(statement, |parser| {
        parser.expect_keyword(Keyword::VIEW)?;
        parser.expect_token(&Token::LParen)?;
        let fields = parser.parse_comma_separated(field)?;
        parser.expect_token(&Token::RParen)?;
        let mut reads = Vec::new();
        if parser.parse_keyword(Keyword::READS) {
            reads = parser.parse_comma_separated(|parser| {
                let name = parser.parse_object_name(false)?;
                let columns = parser.parse_parenthesized_column_list(IsOptional::Mandatory, false);
                let columns = columns?.iter().map(normalize).collect();
                Ok((name, columns))
            })?;
        }
        Ok(ViewColumns { fields, reads })
    })
    .map(Some)
}

fn field(parser: &mut Parser<'_>) -> Result<Field, ParserError> {
    let name = normalize(&parser.parse_identifier()?);
    let text = parser.parse_literal_string()?;
    let data_type: Result<DataType, _> = text.parse();
    let data_type = data_type.map_err(|error| ParserError::ParserError(error.to_string()))?;
    let nullable = !parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]);
    Ok(Field::new(name, data_type, nullable))
}

/// Makes a view of which the columns are known: its query is not planned, so files that it reads need not be there.
pub(crate) async fn view(
    context: &StatementContext,
    create: &CreateView,
    columns: ViewColumns,
    statement: &Statement,
) -> Result<(), SqlError> {
    let reads = columns.reads.into_iter().map(|(name, columns)| {
        let name = context.resolve(&name, statement)?;
        Ok(ViewDependency { name, columns })
    });
    let name = context.resolve(&create.name, statement)?;
    let text = after_as(statement);
    let view = View {
        schema: Arc::new(Schema::new(columns.fields)),
        named: !create.columns.is_empty(),
        text: text.ok_or_else(|| SqlError::not_supported("a view without a query"))?,
        query: *create.query.clone(),
        current_schema: SCHEMA.to_owned(),
        reads: reads.collect::<Result<_, SqlError>>()?,
        comment: None,
        column_comments: Vec::new(),
        name,
    };
    let mut change = context.catalog.change().await;
    if !change.has_schema(&view.name.schema) {
        return Err(no_schema(&view.name));
    }
    change.put(TableOrView::View(Arc::new(view)));
    change.commit().await
}
