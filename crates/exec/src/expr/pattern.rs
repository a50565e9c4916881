//! LIKE, prepared once for all vectors.
//!
//! ```text
//! 'a%b%c%d'     starts with a │ b, and behind it c │ ends with d, behind all of these
//! ```
//! Arrow's kernels make a regular expression of such a pattern, for each vector anew. So texts between `%` are looked
//! for one after the other here. All other patterns are left to Arrow.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Scalar, StringViewArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use arrow_string::like::{ilike, like, nilike, nlike};
use memchr::memmem::Finder;
use std::sync::Arc;

/// A constant pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// One row.
    text: ArrayRef,
    case_insensitive: bool,
    parts: Option<Parts>,
}

/// The texts of a pattern that has no other wildcard than `%`. The first and the last may be empty.
#[derive(Debug)]
struct Parts {
    first: Box<[u8]>,
    inner: Vec<Finder<'static>>,
    last: Box<[u8]>,
}

impl Pattern {
    pub fn new(text: &str, case_insensitive: bool) -> Self {
        Pattern {
            text: Arc::new(StringViewArray::from(vec![text])),
            case_insensitive,
            parts: Parts::of(text).filter(|_| !case_insensitive),
        }
    }

    /// Which texts are like it, or not like it if negated. NULL is neither.
    pub fn test(&self, texts: &ArrayRef, negated: bool) -> Result<BooleanArray, ArrowError> {
        if let Some(parts) = &self.parts {
            let texts = texts.as_string_view();
            let test = |row| parts.are_in(texts.value(row).as_bytes()) != negated;
            let values = BooleanBuffer::collect_bool(texts.len(), test);
            return Ok(BooleanArray::new(values, texts.nulls().cloned()));
        }
        let kernel = match (negated, self.case_insensitive) {
            (false, false) => like,
            (true, false) => nlike,
            (false, true) => ilike,
            (true, true) => nilike,
        };
        kernel(texts, &Scalar::new(Arc::clone(&self.text)))
    }
}

impl Parts {
    /// `None` if there are other wildcards, or if Arrow looks for the only text as fast.
    fn of(pattern: &str) -> Option<Self> {
        let is_plain = !pattern.contains(['_', '\\']);
        let (first, rest) = pattern.split_once('%').filter(|_| is_plain)?;
        let (inner, last) = rest.rsplit_once('%').unwrap_or(("", rest));
        let inner = inner.split('%').filter(|part| !part.is_empty());
        let inner: Vec<_> = inner.map(|part| Finder::new(part).into_owned()).collect();
        let texts = inner.len() + usize::from(!first.is_empty()) + usize::from(!last.is_empty());
        (texts > 1).then(|| Parts {
            first: first.as_bytes().into(),
            inner,
            last: last.as_bytes().into(),
        })
    }

    /// Each part is looked for where it comes first, so that most is left for those behind it.
    ///
    /// Nothing is compared with an empty text. Its address is not mapped. Some C libraries compare by masked loads, and
    /// such a load takes hundreds of cycles there, though it reads nothing.
    fn are_in(&self, text: &[u8]) -> bool {
        let (first, last) = (self.first.len(), self.last.len());
        let fits = text.len() >= first + last
            && (first == 0 || text.starts_with(&self.first))
            && (last == 0 || text.ends_with(&self.last));
        if !fits {
            return false;
        }
        let mut left = &text[first..text.len() - last];
        self.inner.iter().all(|part| {
            let found = part.find(left);
            found.is_some_and(|at| {
                left = &left[at + part.needle().len()..];
                true
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_find_what_arrow_finds() {
        let mut state = 1_u64;
        let mut below = |end: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % end
        };
        let mut taken_apart = 0;
        for _ in 0..2_000 {
            let mut draw = |most: u64| -> String {
                let letters = ["a", "a", "b", "ü", "\n", "%", "%", "_"];
                let letters = (0..below(most)).map(|_| letters[below(8) as usize]);
                letters.collect()
            };
            let pattern = draw(7);
            let texts = (0..40)
                .map(|row| (row != 7).then(|| draw(12)))
                .collect::<StringViewArray>();
            let texts: ArrayRef = Arc::new(texts);
            let prepared = Pattern::new(&pattern, false);
            taken_apart += usize::from(prepared.parts.is_some());
            let scalar = Scalar::new(Arc::clone(&prepared.text));
            let test = |negated| prepared.test(&texts, negated).unwrap();
            assert_eq!(test(false), like(&texts, &scalar).unwrap(), "{pattern:?}");
            assert_eq!(test(true), nlike(&texts, &scalar).unwrap(), "{pattern:?}");
        }
        assert!(taken_apart > 200, "{taken_apart}");
    }

    #[test]
    fn parts_do_not_overlap() {
        let texts = StringViewArray::from(vec!["aba", "ababa", "ab", "abxba", "xaba"]);
        let texts: ArrayRef = Arc::new(texts);
        let test = Pattern::new("ab%ba", false).test(&texts, false).unwrap();
        assert_eq!(
            test,
            BooleanArray::from(vec![false, true, false, true, false])
        );
        assert!(Pattern::new("ab%ba", false).parts.is_some());
        for left_to_arrow in ["ab", "%", "%%", "ab%", "%ab", "%ab%", "a_b%c", "a\\%b%c"] {
            assert!(Pattern::new(left_to_arrow, false).parts.is_none());
        }
    }
}
