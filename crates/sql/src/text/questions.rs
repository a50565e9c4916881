//! What a query has to know of its own tables before it can be written out: their columns for `COLUMNS(…)`,
//! `* RENAME`, ORDER BY ALL, and aliases that name some of them, and the values of a column for PIVOT.
//!
//! ```text
//! SELECT min(COLUMNS(*)) FROM t      asks   SELECT * FROM t        for its columns
//! SELECT min(t.a) AS a, min(t.b) AS b FROM t                       is what the answer makes of it
//! ```
//!
//! Nothing here knows the catalogue. Whoever does plans the query that is asked, and hands its columns over. Then the
//! next question is looked for, until there is none. Inner queries come first, so what is asked has no questions
//! itself.

use crate::error::SqlError;
use crate::text::column_lists;
use crate::text::order_by_all;
use crate::text::pivot;
use crate::text::wildcards;
use datafusion::sql::sqlparser::ast::{
    Ident, Query, Select, SetExpr, TableFactor, VisitorMut, With,
};
use eris_syntax::walk_mut;
use std::ops::ControlFlow;

/// What has to be known.
pub(crate) enum Question {
    /// The columns of this query.
    Columns(Query),
    /// The same, if it can be planned alone: a lateral one cannot.
    ColumnsIfKnown(Query),
    /// The rows of this query, which has one column of strings.
    Values(Query),
}

/// A column of a query that was asked for.
pub(crate) struct KnownColumn {
    /// What it is reached by, its name the last part.
    pub path: Vec<Ident>,
    pub name: String,
}

/// What is known now.
pub(crate) enum Answer {
    Columns(Vec<KnownColumn>),
    Values(Vec<String>),
    Unknown,
}

/// The questions of one query.
#[derive(Default)]
pub(crate) struct Questions {
    /// Lists of an alias that are complete. They look as before, and come first.
    lists: usize,
}

impl Questions {
    /// The first question that is left.
    ///
    /// # Errors
    /// What could not be answered, whatever the tables have.
    pub fn first(&self, query: &mut Query) -> Result<Option<Question>, SqlError> {
        match walk_mut(query, &mut Places::new(self.lists, None)) {
            ControlFlow::Continue(()) => Ok(None),
            ControlFlow::Break(found) => found.map(Some).map_err(|error| *error),
        }
    }

    /// Writes the place of the first question out.
    ///
    /// # Errors
    /// A column that is not there.
    pub fn settle(&mut self, query: &mut Query, answer: Answer) -> Result<(), SqlError> {
        let mut places = Places::new(self.lists, Some(answer));
        if let ControlFlow::Break(Err(error)) = walk_mut(query, &mut places) {
            return Err(*error);
        }
        self.lists += usize::from(places.is_list);
        Ok(())
    }
}

/// Looks for the first place that has a question: asks it, or settles it with the answer.
struct Places {
    /// Lists of an alias that are to be passed over.
    complete: usize,
    answer: Option<Answer>,
    /// Whether the place was such a list.
    is_list: bool,
    scopes: Vec<Scope>,
}

/// A query around the place.
struct Scope {
    with: Option<With>,
    /// Queries in it that have been entered: those of WITH come first.
    entered: usize,
}

type Found = Result<Question, Box<SqlError>>;

impl Places {
    fn new(complete: usize, answer: Option<Answer>) -> Self {
        Places {
            complete,
            answer,
            is_list: false,
            scopes: Vec::new(),
        }
    }

    /// A question about this list's tables, below the WITH of the queries around it.
    fn ask(&self, question: Question) -> Question {
        match question {
            Question::Columns(query) => Question::Columns(self.within(query)),
            Question::ColumnsIfKnown(query) => Question::ColumnsIfKnown(self.within(query)),
            Question::Values(query) => Question::Values(self.within(query)),
        }
    }

    fn within(&self, mut query: Query) -> Query {
        for (depth, scope) in self.scopes.iter().enumerate().rev() {
            let Some(with) = &scope.with else {
                continue;
            };
            let mut with = with.clone();
            let is_in_with =
                depth + 1 < self.scopes.len() && scope.entered <= with.cte_tables.len();
            if is_in_with {
                with.cte_tables.truncate(scope.entered);
                let own = with.cte_tables.pop();
                if let Some(mut own) = own
                    && with.recursive
                    && take_first_part(&mut own.query)
                {
                    with.cte_tables.push(own);
                }
            }
            if with.cte_tables.is_empty() {
                continue;
            }
            if query.with.is_some() {
                query = of_body(SetExpr::Query(Box::new(query)));
            }
            query.with = Some(with);
        }
        query
    }

    /// The question of a place, or its answer put there; `None` if the place has no question.
    fn meet(
        &mut self,
        question: Result<Option<Question>, SqlError>,
        settle: impl FnOnce(Answer) -> Result<(), SqlError>,
    ) -> ControlFlow<Found> {
        match (question, self.answer.take()) {
            (Ok(None), answer) => {
                self.answer = answer;
                ControlFlow::Continue(())
            }
            (Err(error), _) => ControlFlow::Break(Err(Box::new(error))),
            (Ok(Some(question)), None) => ControlFlow::Break(Ok(self.ask(question))),
            (Ok(Some(question)), Some(answer)) => match settle(answer) {
                Ok(()) => ControlFlow::Break(Ok(question)),
                Err(error) => ControlFlow::Break(Err(Box::new(error))),
            },
        }
    }

    /// The same of a list of names, unless it is complete.
    fn meet_list(
        &mut self,
        list: Option<Query>,
        complete: impl FnOnce(Vec<Ident>),
    ) -> ControlFlow<Found> {
        match list {
            Some(_) if self.complete > 0 => {
                self.complete -= 1;
                ControlFlow::Continue(())
            }
            list => {
                let met = self.meet(Ok(list.map(Question::ColumnsIfKnown)), |answer| {
                    if let Answer::Columns(columns) = answer {
                        let names = columns
                            .into_iter()
                            .filter_map(|mut column| column.path.pop());
                        complete(names.collect());
                    }
                    Ok(())
                });
                self.is_list = met.is_break();
                met
            }
        }
    }

    /// The lists of the queries in WITH, each of which knows those before it.
    fn meet_with(&mut self, with: &mut With) -> ControlFlow<Found> {
        for number in 0..with.cte_tables.len() {
            let mut list = column_lists::of_cte(&with.cte_tables[number]);
            if list.is_none() {
                continue;
            }
            if let Some(query) = &mut list
                && with.recursive
            {
                take_first_part(query);
            }
            let mut before = with.clone();
            before.cte_tables.truncate(number);
            self.scopes.push(Scope {
                with: Some(before),
                entered: 0,
            });
            let alias = &mut with.cte_tables[number].alias;
            let met = self.meet_list(list, |names| column_lists::complete(alias, names));
            self.scopes.pop();
            met?;
        }
        ControlFlow::Continue(())
    }
}

/// Leaves the first part of a recursive query, which has all its columns; `false` if it is none.
fn take_first_part(query: &mut Query) -> bool {
    let SetExpr::SetOperation { left, .. } = &*query.body else {
        return false;
    };
    query.body = left.clone();
    true
}

impl VisitorMut for Places {
    type Break = Found;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Found> {
        if let Some(around) = self.scopes.last_mut() {
            around.entered += 1;
        }
        if let Some(with) = &mut query.with {
            self.meet_with(with)?;
        }
        self.scopes.push(Scope {
            with: query.with.clone(),
            entered: 0,
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Found> {
        let question = order_by_all::of_query(query);
        let question = question.map(|body| Question::ColumnsIfKnown(of_body(body)));
        self.meet(Ok(question), |answer| {
            let columns = match answer {
                Answer::Columns(columns) => Some(columns.len()),
                _ => None,
            };
            order_by_all::settle(query, columns);
            Ok(())
        })?;
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Found> {
        let question = pivot::question(table);
        self.meet(question, |answer| pivot::settle(table, answer))?;
        let list = column_lists::of_table(table);
        let list = list.map(|table| pivot::columns_of(&table));
        self.meet_list(list, |names| column_lists::complete_table(table, names))
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Found> {
        let question = wildcards::question(select);
        self.meet(question, |answer| wildcards::settle(select, answer))
    }
}

/// A query that is nothing but this.
pub(crate) fn of_body(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}
