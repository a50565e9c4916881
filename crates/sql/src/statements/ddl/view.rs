//! CREATE VIEW.

use crate::catalog::{RelationName, SCHEMA, TableOrView, View, ViewDependency};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::plan::answers::{self, MayRead};
use crate::plan::files;
use crate::plan::planning;
use crate::plan::resolve::NameScope;
use crate::running::outcome::Begun;
use crate::statements::ddl::{check_schema, dependents, excerpt, excerpt_of, exists};
use crate::text::identifier::{last_name, normalize};
use crate::text::macros::printable;
use crate::text::parse::{after_as, planning_error};
use crate::text::qualify::{Kind, qualify};
use crate::text::rewrite::rewrite;
use crate::text::statement::Statement;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::sql::parser::Statement as PlannedStatement;
use datafusion::sql::sqlparser::ast::{self, CreateTableOptions, CreateView};
use eris_syntax::are_equal;
use std::collections::HashSet;
use std::sync::Arc;

const TAG: &str = "CREATE VIEW";

/// CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(columns)] AS query.
pub(super) async fn create(
    context: &StatementContext,
    create: CreateView,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    reject_the_rest(&create)?;
    let full = context.new_name(&create.name, create.temporary, statement)?;
    if create.temporary {
        context.make_temporary_schema().await;
    }
    let place = || excerpt(&create.name, statement);
    let mut change = context.catalog.change().await;
    check_schema(&change, &full, &create.name, statement)?;
    match change.get(&full) {
        None => {}
        Some(TableOrView::View(_)) if create.or_replace => {}
        Some(_) if create.if_not_exists => return Ok(Begun::Done { tag: TAG }),
        Some(relation) => {
            let hint = matches!(relation, TableOrView::View(_))
                .then_some("CREATE VIEW IF NOT EXISTS, or CREATE OR REPLACE VIEW");
            return Err(exists(relation.kind(), &full, hint).at(place()));
        }
    }
    if !create.query.locks.is_empty() {
        return Err(SqlError::not_supported("SELECT … FOR UPDATE or FOR SHARE"));
    }
    let mut query = create.query.clone();
    let files = files::open_functions(&mut query, context.state(), statement).await?;
    let names = NameScope::of(&change, context).with_files(files);
    let state = names.state();
    answers::write_out(context, &mut query, &names, MayRead::Columns, statement).await?;
    let headers = rewrite(&mut query)?;
    let query = ast::Statement::Query(query);
    let tree = PlannedStatement::Statement(Box::new(query));
    let found = planning::check_names(context, &tree, &state, &names, statement).await?;
    let mut reads = Vec::new();
    for name in found {
        let columns = match change.get(&name) {
            Some(TableOrView::Table(table)) => table.column_names().map(str::to_owned).collect(),
            Some(TableOrView::View(view)) => view.column_names().map(str::to_owned).collect(),
            // A file, a function or a system table.
            None => continue,
        };
        reads.push(ViewDependency { name, columns });
    }
    let temporary = reads.iter().find(|read| read.name.is_temporary());
    if let (Some(read), false) = (temporary, create.temporary) {
        let message = format!(
            "view \"{full}\" would read \"{}\", which ends with the session",
            read.name
        );
        return Err(SqlError::invalid(Mistake::InvalidObjectDefinition, message)
            .at(place())
            .with_hint(Some("CREATE TEMP VIEW")));
    }
    let through = change.dependents(&full);
    let circular = |read: &&ViewDependency| {
        read.name == full || through.iter().any(|dependent| dependent.name == read.name)
    };
    if let Some(read) = reads.iter().find(circular) {
        return Err(SqlError::invalid(
            Mistake::InvalidObjectDefinition,
            format!(
                "view \"{full}\" would read itself, through \"{}\"",
                read.name
            ),
        )
        .at(place()));
    }
    let plan = eris_exact::plan_statement(&state, tree).await;
    let plan = plan.and_then(|plan| state.optimize(&plan));
    let plan = plan.map_err(|error| planning_error(error, statement, &state))?;
    let text = match (&*context.current_schema, after_as(statement)) {
        // What macros stand for is in the tree only.
        (SCHEMA, Some(text)) if !statement.calls_macros() => text,
        (schema, _) => {
            let mut query = create.query.clone();
            qualify(&mut *query, |kind, name| {
                let full = RelationName::new(schema, last_name(name)?);
                let is_read = reads.iter().any(|read| read.name == full);
                (kind == Kind::Relation && is_read).then(|| schema.to_owned())
            });
            printable(&*query, "view").map_err(|error| error.at(place()))?;
            query.to_string()
        }
    };
    let view = Arc::new(View {
        schema: Arc::new(columns(
            &create,
            &headers.name(&dependents::columns(&plan)),
            &full.to_string(),
            statement,
        )?),
        named: !create.columns.is_empty(),
        text,
        query: *create.query.clone(),
        current_schema: context.current_schema.to_string(),
        reads,
        comment: None,
        column_comments: Vec::new(),
        name: full.clone(),
    });
    let replaced = change.put(TableOrView::View(Arc::clone(&view)));
    // Also that it is not too deep.
    NameScope::of(&change, context).plan_view(&view).await?;
    if replaced.is_some() {
        dependents::keep(context, &mut change, &full, "view", false).await?;
    }
    change.commit().await?;
    Ok(Begun::Done { tag: TAG })
}

/// The columns of the view, called as CREATE VIEW says or as in its query.
fn columns(
    create: &CreateView,
    query: &Schema,
    view: &str,
    statement: &Statement,
) -> Result<Schema, SqlError> {
    let (given, yielded) = (create.columns.len(), query.fields().len());
    if given > 0 && given != yielded {
        let message =
            format!("view \"{view}\": {given} names, but the query has {yielded} columns");
        let place = excerpt_of(&create.columns[0].name, statement);
        return Err(SqlError::invalid(Mistake::Syntax, message).at(place));
    }
    let mut seen = HashSet::new();
    let mut fields = Vec::with_capacity(yielded);
    for (position, field) in query.fields().iter().enumerate() {
        let column = create.columns.get(position);
        let name = column.map_or_else(|| field.name().clone(), |column| normalize(&column.name));
        if !seen.insert(name.clone()) {
            let place = column.and_then(|column| excerpt_of(&column.name, statement));
            return Err(SqlError::invalid(
                Mistake::DuplicateColumn,
                format!("column \"{name}\" of view \"{view}\" occurs twice"),
            )
            .at(place)
            .with_hint(Some("give one of them another name with AS")));
        }
        fields.push(Field::new(
            name,
            field.data_type().clone(),
            field.is_nullable(),
        ));
    }
    Ok(Schema::new(fields))
}

fn reject_the_rest(create: &CreateView) -> Result<(), SqlError> {
    let types = create
        .columns
        .iter()
        .any(|column| column.data_type.is_some() || column.options.is_some());
    let rejected = [
        (create.materialized, "CREATE MATERIALIZED VIEW"),
        (
            create.secure || create.or_alter,
            "CREATE SECURE or OR ALTER VIEW",
        ),
        (types, "CREATE VIEW with types or options of columns"),
        (
            !are_equal(&create.options, &CreateTableOptions::None)
                || !create.cluster_by.is_empty()
                || create.comment.is_some()
                || create.with_no_schema_binding
                || create.copy_grants
                || create.to.is_some()
                || create.params.is_some(),
            "CREATE VIEW with options",
        ),
    ];
    match rejected.iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(SqlError::not_supported(*what)),
        None if create.or_replace && create.if_not_exists => Err(SqlError::invalid(
            Mistake::Syntax,
            "CREATE VIEW with both OR REPLACE and IF NOT EXISTS",
        )),
        None => Ok(()),
    }
}
