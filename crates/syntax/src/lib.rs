//! The SQL that Eris reads, walks over its syntax trees, and comparisons of them.
//!
//! ```text
//! doors ─ sql ─[syntax]─ sqlparser's trees
//! ```
//!
//! A visitor is a type parameter of `sqlparser`'s walk. So each visitor would compile the walk over all kinds of nodes
//! anew: some 900 functions. Here one type stands for all visitors, and a node reaches its visitor by a dynamic call.
//! `==` of trees would be compiled anew by each crate, too, with all kinds of nodes. [`are_equal`] is compiled here. A
//! change of `sql` compiles neither again. Nobody walks or compares trees otherwise.

#![forbid(unsafe_code)]

mod define;
mod dialect;

pub use dialect::ErisDialect;

use sqlparser::ast::{
    CreateTable, CreateTableOptions, Cte, Delete, DoUpdate, Expr, FunctionArguments, GroupByExpr,
    ObjectName, OrderBy, OrderByExpr, Query, Select, SelectItem, Statement, TableFactor,
    ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut, WildcardAdditionalOptions,
};
use std::ops::ControlFlow;

/// A part of a statement that can be walked.
pub trait Tree {
    /// Tells a visitor of all nodes.
    #[doc(hidden)]
    fn tell(&self, visitor: &mut Erased<'_>) -> ControlFlow<()>;

    /// Tells a visitor that may change them of all nodes.
    #[doc(hidden)]
    fn tell_mut(&mut self, visitor: &mut ErasedMut<'_>) -> ControlFlow<()>;
}

/// Shows all nodes of a tree to a visitor, until it breaks off.
pub fn walk<V: Visitor>(tree: &impl Tree, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut told = Told {
        visitor,
        broken: None,
    };
    match tree.tell(&mut Erased(&mut told)) {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => ControlFlow::Break(told.broken.expect("it broke off")),
    }
}

/// The same with a visitor that may change them.
pub fn walk_mut<V: VisitorMut>(tree: &mut impl Tree, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut told = ToldMut {
        visitor,
        broken: None,
    };
    match tree.tell_mut(&mut ErasedMut(&mut told)) {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => ControlFlow::Break(told.broken.expect("it broke off")),
    }
}

/// Shows all expressions, each before its parts.
pub fn expressions<E>(
    tree: &impl Tree,
    visit: impl FnMut(&Expr) -> ControlFlow<E>,
) -> ControlFlow<E> {
    walk(tree, &mut Expressions(visit))
}

/// Shows all expressions to be changed, each after its parts.
pub fn expressions_mut<E>(
    tree: &mut impl Tree,
    visit: impl FnMut(&mut Expr) -> ControlFlow<E>,
) -> ControlFlow<E> {
    walk_mut(tree, &mut Expressions(visit))
}

/// Shows the expressions that are in no subquery, each before its parts.
pub fn own_expressions<E>(
    tree: &impl Tree,
    visit: impl FnMut(&Expr) -> ControlFlow<E>,
) -> ControlFlow<E> {
    walk(tree, &mut OwnExpressions { visit, deep: 0 })
}

/// Shows the expressions that are in no subquery to be changed, each after its parts.
pub fn own_expressions_mut<E>(
    tree: &mut impl Tree,
    visit: impl FnMut(&mut Expr) -> ControlFlow<E>,
) -> ControlFlow<E> {
    walk_mut(tree, &mut OwnExpressions { visit, deep: 0 })
}

/// Shows the names of all tables and views.
pub fn relations<E>(
    tree: &impl Tree,
    visit: impl FnMut(&ObjectName) -> ControlFlow<E>,
) -> ControlFlow<E> {
    walk(tree, &mut Relations(visit))
}

struct Expressions<F>(F);

impl<E, F: FnMut(&Expr) -> ControlFlow<E>> Visitor for Expressions<F> {
    type Break = E;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<E> {
        (self.0)(expr)
    }
}

impl<E, F: FnMut(&mut Expr) -> ControlFlow<E>> VisitorMut for Expressions<F> {
    type Break = E;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<E> {
        (self.0)(expr)
    }
}

struct OwnExpressions<F> {
    visit: F,
    /// How many queries are around.
    deep: usize,
}

impl<E, F: FnMut(&Expr) -> ControlFlow<E>> Visitor for OwnExpressions<F> {
    type Break = E;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<E> {
        self.deep += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<E> {
        self.deep -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<E> {
        match self.deep {
            0 => (self.visit)(expr),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl<E, F: FnMut(&mut Expr) -> ControlFlow<E>> VisitorMut for OwnExpressions<F> {
    type Break = E;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<E> {
        self.deep += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<E> {
        self.deep -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<E> {
        match self.deep {
            0 => (self.visit)(expr),
            _ => ControlFlow::Continue(()),
        }
    }
}

struct Relations<F>(F);

impl<E, F: FnMut(&ObjectName) -> ControlFlow<E>> Visitor for Relations<F> {
    type Break = E;

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<E> {
        (self.0)(relation)
    }
}

type Shared<'a, T> = &'a T;
type Exclusive<'a, T> = &'a mut T;

/// The type that stands for all visitors of a kind, and how it tells them of nodes.
macro_rules! erased {
    ($visitor:ident, $erased:ident, $told:ident, $nodes:ident, $reference:ident, $($hook:ident: $node:ty,)+) => {
        /// Stands for all visitors of a kind.
        #[doc(hidden)]
        pub struct $erased<'a>(&'a mut dyn $nodes);

        struct $told<'a, V: $visitor> {
            visitor: &'a mut V,
            broken: Option<V::Break>,
        }

        trait $nodes {
            $(fn $hook(&mut self, node: $reference<'_, $node>) -> ControlFlow<()>;)+
        }

        impl<V: $visitor> $nodes for $told<'_, V> {
            $(fn $hook(&mut self, node: $reference<'_, $node>) -> ControlFlow<()> {
                self.visitor.$hook(node).map_break(|broken| self.broken = Some(broken))
            })+
        }

        impl $visitor for $erased<'_> {
            type Break = ();

            $(fn $hook(&mut self, node: $reference<'_, $node>) -> ControlFlow<()> {
                self.0.$hook(node)
            })+
        }
    };
}

/// All that a visitor can be told of.
macro_rules! erased_for_all_nodes {
    ($visitor:ident, $erased:ident, $told:ident, $nodes:ident, $reference:ident) => {
        erased! {
            $visitor, $erased, $told, $nodes, $reference,
            pre_visit_query: Query,
            post_visit_query: Query,
            pre_visit_select: Select,
            post_visit_select: Select,
            pre_visit_relation: ObjectName,
            post_visit_relation: ObjectName,
            pre_visit_table_factor: TableFactor,
            post_visit_table_factor: TableFactor,
            pre_visit_expr: Expr,
            post_visit_expr: Expr,
            pre_visit_statement: Statement,
            post_visit_statement: Statement,
            pre_visit_value: ValueWithSpan,
            post_visit_value: ValueWithSpan,
        }
    };
}

erased_for_all_nodes!(Visitor, Erased, Told, Nodes, Shared);
erased_for_all_nodes!(VisitorMut, ErasedMut, ToldMut, NodesMut, Exclusive);

/// A part of a statement that can be compared.
pub trait Comparable {
    #[doc(hidden)]
    fn equals(&self, other: &Self) -> bool;
}

/// Whether two trees are the same. Where they were written makes no difference.
pub fn are_equal<T: Comparable>(one: &T, other: &T) -> bool {
    one.equals(other)
}

macro_rules! comparable {
    ($($tree:ty),+ $(,)?) => {$(
        impl Comparable for $tree {
            #[inline(never)]
            fn equals(&self, other: &Self) -> bool {
                self == other
            }
        }
    )+};
}

comparable!(
    Expr,
    CreateTable,
    CreateTableOptions,
    Delete,
    WildcardAdditionalOptions
);

/// Compiles the walks over these parts in this crate: no function has a type parameter, and none is inlined elsewhere.
macro_rules! trees {
    ($($tree:ty),+ $(,)?) => {$(
        impl Tree for $tree {
            #[inline(never)]
            fn tell(&self, visitor: &mut Erased<'_>) -> ControlFlow<()> {
                self.visit(visitor)
            }

            #[inline(never)]
            fn tell_mut(&mut self, visitor: &mut ErasedMut<'_>) -> ControlFlow<()> {
                self.visit(visitor)
            }
        }
    )+};
}

trees!(
    Statement,
    Query,
    Select,
    SelectItem,
    Expr,
    OrderBy,
    OrderByExpr,
    TableFactor,
    Cte,
    DoUpdate,
    FunctionArguments,
    GroupByExpr
);
