//! The thirteen queries of the benchmark, in four flights (SSB paper, Section 3). The texts are files of their own, so
//! that every engine that is compared, in whatever language it is driven, gets the very same ones.

/// One query of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Flight and number, `"1.1"` to `"4.3"`.
    pub id: &'static str,
    /// The text, without a semicolon at its end.
    pub sql: &'static str,
}

impl Query {
    /// The query called `id`, as in `"2.1"` or `"Q2.1"`.
    pub fn by_id(id: &str) -> Option<Query> {
        let id = id.trim_start_matches(['Q', 'q']);
        QUERIES.iter().copied().find(|query| query.id == id)
    }
}

/// All thirteen, in the order of the paper.
pub fn queries() -> &'static [Query] {
    &QUERIES
}

macro_rules! query {
    ($id:literal) => {
        Query {
            id: $id,
            sql: include_str!(concat!("../queries/q", $id, ".sql")).trim_ascii_end(),
        }
    };
}

static QUERIES: [Query; 13] = [
    query!("1.1"),
    query!("1.2"),
    query!("1.3"),
    query!("2.1"),
    query!("2.2"),
    query!("2.3"),
    query!("3.1"),
    query!("3.2"),
    query!("3.3"),
    query!("3.4"),
    query!("4.1"),
    query!("4.2"),
    query!("4.3"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_found_by_either_spelling() {
        assert_eq!(Query::by_id("Q3.4"), Query::by_id("3.4"));
        assert_eq!(Query::by_id("1.1"), Some(queries()[0]));
        assert_eq!(Query::by_id("5.1"), None);
        let tables = |query: &Query| query.sql.matches("lineorder").count();
        assert!(queries().iter().all(|query| tables(query) == 1));
        assert!(queries().iter().all(|query| !query.sql.contains(';')));
    }
}
