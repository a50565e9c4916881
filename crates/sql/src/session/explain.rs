//! EXPLAIN and EXPLAIN ANALYZE: one row per line of the plan.

mod phases;

use super::prepared::Prepared;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::fragment_exec::FragmentExec;
use crate::plan::planning;
use crate::plan::planning::Plan;
use crate::plan::time::Time;
use crate::plan_cache::{self, Asked, Mask};
use crate::running::outcome::Begun;
use crate::statements::dml;
use crate::statements::show::{rows_of, text};
use crate::text::parameter::Parameter;
use crate::text::statement::Statement;
use datafusion::physical_plan::display::ProjectSchemaDisplay;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use datafusion::sql::sqlparser::ast;
use eris_exact::counted_input;
use eris_home::ReadBandwidth;
use eris_numa::Bytes;
use futures::StreamExt;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `EXPLAIN [ANALYZE] [VERBOSE] query`; of EXECUTE with the prepared statement and its values.
pub(crate) async fn explain(
    context: &StatementContext,
    tree: ast::Statement,
    executed: Option<(Arc<Prepared>, Vec<Parameter>)>,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let ast::Statement::Explain {
        analyze,
        verbose,
        statement: explained,
        format,
        options,
        query_plan,
        estimate,
        ..
    } = tree
    else {
        unreachable!("called for EXPLAIN only");
    };
    if format.is_some() || options.is_some() || query_plan || estimate {
        return Err(SqlError::not_supported("EXPLAIN with options"));
    }
    let path = match analyze {
        true => None,
        false => Some(path(context, &explained, executed.as_ref(), statement).await),
    };
    let began = Instant::now();
    let plan = match dml::taken_apart(*explained)? {
        (ast::Statement::Query(query), _) => planning::plan(context, *query, statement).await?,
        (tree, with) if dml::changed_table(&tree).is_some() => {
            if analyze {
                return Err(
                    SqlError::not_supported("EXPLAIN ANALYZE of a statement that writes")
                        .with_hint(Some("EXPLAIN shows how it finds the rows")),
                );
            }
            dml::plan(context, tree, with, statement).await?
        }
        (
            ast::Statement::Insert(ast::Insert {
                source: Some(query),
                ..
            }),
            _,
        ) if !analyze => planning::plan(context, *query, statement).await?,
        _ => return Err(SqlError::not_supported("EXPLAIN of anything but a query")),
    };
    let planned = began.elapsed();
    let mut lines = Vec::new();
    let mut analyzed = None;
    if analyze {
        let (rows, ran) = exhaust(&plan).await?;
        analyzed = Some(Analyzed {
            bandwidth: context.read_bandwidth().await,
            nodes: context.home.nodes().len(),
        });
        lines.push(format!(
            "planned in {}, ran in {}, {rows} rows",
            Time(planned),
            Time(ran)
        ));
    }
    lines.extend(context.home.paced_note());
    if verbose {
        lines.push("logical plan:".to_owned());
        lines.extend(
            plan.logical
                .display_indent()
                .to_string()
                .lines()
                .map(|line| format!("  {line}")),
        );
        lines.push("physical plan:".to_owned());
    }
    draw(plan.physical.as_ref(), 0, analyzed, verbose, &mut lines);
    lines.extend(path);
    rows_of([("plan", text(lines.into_iter().map(Some)))])
}

/// Which way the statement goes, in a line: the short one, or what keeps it from that.
async fn path(
    context: &StatementContext,
    tree: &ast::Statement,
    executed: Option<&(Arc<Prepared>, Vec<Parameter>)>,
    statement: &Statement,
) -> String {
    let path = match executed {
        Some((prepared, values)) => match prepared.asked(values) {
            Ok(asked) => {
                let (tree, statement) = (prepared.tree(), prepared.statement());
                plan_cache::explain(context, tree, asked, statement).await
            }
            Err(reason) => Err(reason),
        },
        None => match Mask::of_explained(statement.text()) {
            Ok(mask) => {
                let asked = Asked::Text(mask.of(statement.text()));
                plan_cache::explain(context, tree, asked, statement).await
            }
            Err(reason) => Err(reason),
        },
    };
    match path {
        Ok(kind) => format!("short path: {kind}"),
        Err(reason) => format!("general path: {reason}"),
    }
}

/// Runs a plan to its end; its rows and its time.
async fn exhaust(plan: &Plan) -> Result<(usize, Duration), SqlError> {
    let began = Instant::now();
    let mut stream = plan.run()?;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch.map_err(SqlError::from_datafusion)?.num_rows();
    }
    Ok((rows, began.elapsed()))
}

/// Where a plan ran.
#[derive(Clone, Copy)]
struct Analyzed<'a> {
    /// What memory delivers, if that is known.
    bandwidth: Option<&'a ReadBandwidth>,
    nodes: usize,
}

/// The plan as an indented tree; with what each node did, if it ran.
fn draw(
    node: &dyn ExecutionPlan,
    depth: usize,
    analyzed: Option<Analyzed<'_>>,
    verbose: bool,
    lines: &mut Vec<String>,
) {
    if let Some(input) = counted_input(node) {
        return draw(input.as_ref(), depth, analyzed, verbose, lines);
    }
    let indent = "  ".repeat(depth);
    let mut line = format!("{indent}{}", NodeLine(node));
    if analyzed.is_some()
        && let Some(metrics) = node.metrics()
    {
        let rows = metrics.output_rows().unwrap_or(0);
        let time = Duration::from_nanos(metrics.elapsed_compute().unwrap_or(0) as u64);
        line.push_str(&format!(", rows={rows}"));
        if let Some(estimate) = estimate(node) {
            line.push_str(&format!(", estimated={estimate}"));
        }
        line.push_str(&format!(", time={}", Time(time)));
        if let Some(spilled) = metrics.spilled_bytes().filter(|&bytes| bytes > 0) {
            line.push_str(&format!(", spilled={}", Bytes(spilled as u64)));
        }
    }
    if verbose {
        line.push_str(&format!(
            ", schema={}",
            ProjectSchemaDisplay(&node.schema())
        ));
    }
    lines.push(line);
    if let Some(analyzed) = analyzed
        && let Some(report) = node
            .downcast_ref::<FragmentExec>()
            .and_then(FragmentExec::report)
    {
        phases::draw(&report, analyzed, &indent, lines);
    }
    for child in node.children() {
        draw(child.as_ref(), depth + 1, analyzed, verbose, lines);
    }
}

/// How many rows the planner expected, if it knows.
fn estimate(node: &dyn ExecutionPlan) -> Option<usize> {
    let statistics = StatisticsContext::new().compute(node, &StatisticsArgs::new());
    statistics.ok()?.num_rows.get_value().copied()
}

/// A node in one line.
struct NodeLine<'a>(&'a dyn ExecutionPlan);

impl Display for NodeLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(DisplayFormatType::Default, f)
    }
}
