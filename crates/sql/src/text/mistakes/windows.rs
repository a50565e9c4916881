//! Windows: whether they are defined, where their functions stand, and what their frames say.

use super::{Search, found, place_of_ident};
use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::parse::place_of;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, Ident, NamedWindowDefinition, Query, Select, Value, Visitor, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};
use eris_syntax::walk;
use std::ops::ControlFlow;

/// No window function in WHERE or HAVING, and each named window is defined.
pub(super) fn in_place(select: &Select) -> Search {
    for condition in [&select.selection, &select.having].into_iter().flatten() {
        let inside = &mut Functions::new(|_| true);
        if let ControlFlow::Break(function) = walk(condition, inside) {
            let message = "WHERE or HAVING contains a window function";
            let error = SqlError::invalid(Mistake::Windowing, message);
            let hint = "QUALIFY filters by window functions, and so does WHERE around a subquery";
            return found(error.with_hint(Some(hint)), place_of(&function.name));
        }
    }
    let defined = &select.named_window;
    let is_undefined = |window: &WindowType| undefined(window, defined).is_some();
    match walk(select, &mut Functions::new(is_undefined)) {
        ControlFlow::Continue(()) => Search::Continue(()),
        ControlFlow::Break(function) => {
            let over = function.over.as_ref();
            let Some(name) = over.and_then(|window| undefined(window, defined)) else {
                return Search::Continue(());
            };
            let message = format!("window \"{}\" is not defined", normalize(name));
            let error = SqlError::invalid(Mistake::UndefinedObject, message)
                .with_hint(Some(format!("define it behind FROM: WINDOW {name} AS (…)")));
            found(error, place_of_ident(name))
        }
    }
}

/// The name that a window is or extends, unless it is defined.
fn undefined<'a>(window: &'a WindowType, defined: &[NamedWindowDefinition]) -> Option<&'a Ident> {
    let name = match window {
        WindowType::NamedWindow(name) => name,
        WindowType::WindowSpec(spec) => spec.window_name.as_ref()?,
    };
    let is_defined = (defined.iter()).any(|window| normalize(&window.0) == normalize(name));
    (!is_defined).then_some(name)
}

/// Looks for a window function, outside of subqueries, whose window is so.
struct Functions<F> {
    is_wanted: F,
    subqueries: usize,
}

impl<F: Fn(&WindowType) -> bool> Functions<F> {
    fn new(is_wanted: F) -> Self {
        Functions {
            is_wanted,
            subqueries: 0,
        }
    }
}

impl<F: Fn(&WindowType) -> bool> Visitor for Functions<F> {
    type Break = Box<Function>;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Box<Function>> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Box<Function>> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<Function>> {
        match expr {
            Expr::Function(function)
                if self.subqueries == 0 && function.over.as_ref().is_some_and(&self.is_wanted) =>
            {
                ControlFlow::Break(Box::new(function.clone()))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A frame has an order to count in, counts by whole numbers, and does not end before it begins.
pub(super) fn right_frame(function: &Function) -> Search {
    let Some(WindowType::WindowSpec(spec)) = &function.over else {
        return Search::Continue(());
    };
    let Some(frame) = &spec.window_frame else {
        return Search::Continue(());
    };
    match wrong(frame, spec) {
        Some(error) => found(error, place_of(&function.name)),
        None => Search::Continue(()),
    }
}

fn wrong(frame: &WindowFrame, spec: &WindowSpec) -> Option<SqlError> {
    let start = &frame.start_bound;
    let end = frame
        .end_bound
        .as_ref()
        .unwrap_or(&WindowFrameBound::CurrentRow);
    let offsets = [start, end].map(offset);
    let invalid = |message| SqlError::invalid(Mistake::Windowing, message);
    let is_range = frame.units == WindowFrameUnits::Range;
    if is_range && offsets.iter().any(Option::is_some) && spec.order_by.len() != 1 {
        let message = "RANGE needs exactly one column in the window's ORDER BY".to_owned();
        return Some(invalid(message).with_hint(Some("ROWS counts rows, whatever their order")));
    }
    let mut wrong_offsets = offsets.iter().flatten().filter(|offset| !is_count(offset));
    if let Some(offset) = wrong_offsets.next().filter(|_| !is_range) {
        let mistake = match offset {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Mistake::InvalidColumnReference,
            Expr::Value(value) if value.value.clone().into_string().is_some() => {
                Mistake::InvalidTextRepresentation
            }
            _ => Mistake::InvalidFrameOffset,
        };
        let message = "the window's frame has an offset that is no count of rows";
        let hint = "PRECEDING and FOLLOWING say the direction";
        return Some(SqlError::invalid(mistake, message).with_hint(Some(hint)));
    }
    ends_before_it_begins(start, end).then(|| {
        invalid(format!(
            "the window's frame ends before it begins: from {start} to {end}"
        ))
    })
}

/// The `n` of `n PRECEDING` and `n FOLLOWING`.
fn offset(bound: &WindowFrameBound) -> Option<&Expr> {
    match bound {
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => {
            offset.as_deref()
        }
        WindowFrameBound::CurrentRow => None,
    }
}

fn is_count(offset: &Expr) -> bool {
    count(offset).is_some()
}

fn count(offset: &Expr) -> Option<u64> {
    match offset {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn ends_before_it_begins(start: &WindowFrameBound, end: &WindowFrameBound) -> bool {
    // From the first row of the partition to the last one.
    fn rank(bound: &WindowFrameBound) -> u8 {
        match bound {
            WindowFrameBound::Preceding(None) => 0,
            WindowFrameBound::Preceding(Some(_)) => 1,
            WindowFrameBound::CurrentRow => 2,
            WindowFrameBound::Following(Some(_)) => 3,
            WindowFrameBound::Following(None) => 4,
        }
    }
    let counts = (offset(start).and_then(count), offset(end).and_then(count));
    match (rank(start), rank(end), counts) {
        (1, 1, (Some(start), Some(end))) => start < end,
        (3, 3, (Some(start), Some(end))) => start > end,
        (start, end, _) => start > end,
    }
}
