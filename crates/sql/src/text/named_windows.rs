//! Windows that are named, or that add to a named one, written out: DataFusion knows the plain name only.
//!
//! ```text
//! SELECT sum(x) OVER (w ORDER BY d) … WINDOW w AS (PARTITION BY k)
//! SELECT sum(x) OVER (PARTITION BY k ORDER BY d) …
//! ```
//!
//! Intervals in frames are written as strings, which is all that DataFusion takes there.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, Select, Value, WindowFrameBound,
    WindowSpec, WindowType,
};
use eris_syntax::expressions_mut;
use std::ops::ControlFlow;

/// Puts the definitions of a list's windows in the places of their names. A name without definition stays, to be
/// rejected.
pub(crate) fn inline(select: &mut Select) {
    let definitions = std::mem::take(&mut select.named_window);
    // The visitor never breaks off.
    let _ = expressions_mut(select, |expr| {
        if let Expr::Function(function) = expr
            && let Some(over) = &mut function.over
        {
            match over {
                WindowType::NamedWindow(name) => {
                    if let Some(spec) = find(name, &definitions) {
                        *over = WindowType::WindowSpec(spec);
                    }
                }
                WindowType::WindowSpec(spec) => add(spec, &definitions),
            }
            if let WindowType::WindowSpec(WindowSpec {
                window_frame: Some(frame),
                ..
            }) = over
            {
                let bounds = std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound);
                bounds.for_each(interval_as_string);
            }
        }
        ControlFlow::<()>::Continue(())
    });
    select.named_window = definitions;
}

/// `INTERVAL 1 DAY PRECEDING` as `INTERVAL '1' DAY PRECEDING`.
fn interval_as_string(bound: &mut WindowFrameBound) {
    let (WindowFrameBound::Preceding(Some(expr)) | WindowFrameBound::Following(Some(expr))) = bound
    else {
        return;
    };
    if let Expr::Interval(interval) = &mut **expr
        && let Expr::Value(value) = &mut *interval.value
        && let Value::Number(digits, _) = &value.value
    {
        value.value = Value::SingleQuotedString(digits.clone());
    }
}

fn find(name: &Ident, definitions: &[NamedWindowDefinition]) -> Option<WindowSpec> {
    // Only what stands before may be referred to, so this ends.
    let same =
        |definition: &NamedWindowDefinition| definition.0.value.eq_ignore_ascii_case(&name.value);
    let position = definitions.iter().position(same)?;
    let before = &definitions[..position];
    match &definitions[position].1 {
        NamedWindowExpr::NamedWindow(name) => find(name, before),
        NamedWindowExpr::WindowSpec(spec) => {
            let mut spec = spec.clone();
            add(&mut spec, before);
            Some(spec)
        }
    }
}

/// What a window takes from the one it names.
fn add(spec: &mut WindowSpec, definitions: &[NamedWindowDefinition]) {
    let Some(base) = spec
        .window_name
        .as_ref()
        .and_then(|name| find(name, definitions))
    else {
        return;
    };
    spec.window_name = None;
    if spec.partition_by.is_empty() {
        spec.partition_by = base.partition_by;
    }
    if spec.order_by.is_empty() {
        spec.order_by = base.order_by;
    }
    if spec.window_frame.is_none() {
        spec.window_frame = base.window_frame;
    }
}
