//! Macros: expressions and queries with a name and parameters, put in where they are called.
//!
//! ```text
//! CREATE MACRO taxed(price, rate := 0.19) AS price * (1 + rate)
//! SELECT taxed(p) FROM item                  SELECT (p * (1 + 0.19)) AS "taxed(p)" FROM item
//!
//! CREATE MACRO top(n) AS TABLE SELECT * FROM item ORDER BY p DESC LIMIT n
//! FROM top(3)                                FROM (SELECT * FROM item ORDER BY p DESC LIMIT 3) AS top
//! ```
//!
//! The planner never sees a call. So a macro costs nothing when it runs, and an aggregate or a window in it works as
//! if it had been written out. An argument keeps its meaning: a column of the caller that a table within the macro has,
//! too, is rejected, or gets the name of its table ([`capture`]).

mod capture;
mod definition;
mod expand;
mod parse;

pub(crate) use capture::unknown_column;
pub(crate) use definition::{Body, Definition, Form};
pub(crate) use expand::{Macros, expand};
pub(crate) use parse::{CreateMacro, MacroStatement, parse, printable};
