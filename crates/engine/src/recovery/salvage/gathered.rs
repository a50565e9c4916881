//! What all groups say but rows, put together before any row is read.
//!
//! ```text
//! snapshot  strings 0 … 9 ▒▒▒ strings 20 … 29         codes  0 1 … 9 · · · 20 … 29 30
//! log       strings 30                          ──▶   new    0 1 … 9       10 … 19 20
//! ```
//!
//! An object or a string that is lost in one place may be whole in another: the log begins before the snapshot ends.

use super::readable;
use crate::durability::records::{Record, StoredObject, StoredRanges};
use crate::recovery::objects::RecoveredObject;
use eris_column::Dictionary;
use eris_home::{Definition, DefinitionChange};
use eris_log::{Group, Look, Origin};
use eris_types::{Code, ObjectId, SegmentId, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// No dictionary has more strings than this.
const MOST_STRINGS: usize = 1 << 21;

/// What is known.
#[derive(Default)]
pub(super) struct Gathered {
    pub objects: BTreeMap<ObjectId, StoredObject>,
    pub dropped: BTreeSet<ObjectId>,
    pub strings: HashMap<(ObjectId, usize), Strings>,
    pub ranges: HashMap<ObjectId, StoredRanges>,
    pub definitions: BTreeMap<String, Definition>,
    pub last_object: ObjectId,
    pub last_segment: SegmentId,
    pub snapshot: Timestamp,
    pub through: Timestamp,
    /// Whether a group is lost that may have had definitions.
    pub may_have_lost_definitions: bool,
    /// Whether any group is lost.
    pub has_lost_groups: bool,
    snapshot_part: SnapshotPart,
}

/// What the snapshot says. What an older version has written ends with the rows.
#[derive(Clone, Copy, Debug, Default)]
struct SnapshotPart {
    /// How far it was read.
    at: Part,
    /// Whether something is missing among the definitions, and behind the last rows.
    has_gap_in_definitions: bool,
    has_gap_behind_rows: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Definitions,
    Objects,
    /// Objects and definitions, once more.
    Again,
}

/// The strings of a column by their codes.
#[derive(Default)]
pub(super) struct Strings {
    /// `None`: nobody knows it.
    by_code: Vec<Option<Box<str>>>,
    /// Codes of which two records say different things.
    ambiguous: BTreeSet<usize>,
}

impl Strings {
    fn add(&mut self, first: usize, strings: &[&str]) {
        for (code, string) in (first..MOST_STRINGS).zip(strings) {
            if self.by_code.len() <= code {
                self.by_code.resize(code + 1, None);
            }
            let known = &mut self.by_code[code];
            match known {
                Some(known_string) if **known_string != **string => {
                    *known = None;
                    self.ambiguous.insert(code);
                }
                None if !self.ambiguous.contains(&code) => *known = Some((*string).into()),
                _ => {}
            }
        }
    }

    /// The dictionary of those that are known; and the new codes of all, if one has another.
    fn dictionary(&self) -> (Dictionary, Option<Vec<Option<Code>>>) {
        let mut new: HashMap<&str, Code> = HashMap::new();
        let mut strings = Vec::new();
        let codes = self.by_code.iter().map(|string| {
            let string = string.as_deref()?;
            Some(*new.entry(string).or_insert_with(|| {
                strings.push(string);
                Code(strings.len() as u32 - 1)
            }))
        });
        let codes: Vec<Option<Code>> = codes.collect();
        let dictionary = Dictionary::new().extend(strings.into_iter());
        let is_same = (0..).map(|code| Some(Code(code))).zip(&codes);
        let is_same = is_same.into_iter().all(|(code, new)| code == *new);
        (dictionary, (!is_same).then_some(codes))
    }
}

impl RecoveredObject {
    /// A column has had these strings, if it has a dictionary.
    pub(super) fn set_strings(&mut self, column: usize, strings: Strings) {
        let Some(known) = self.dictionaries.get_mut(column).and_then(Option::as_mut) else {
            return;
        };
        let (dictionary, codes) = strings.dictionary();
        *known = dictionary.clone();
        self.object.publish(column, dictionary);
        if let (Some(codes), Some(all)) = (codes, &mut self.codes) {
            all.of_columns.insert(column, codes);
        }
    }
}

impl Look for Gathered {
    fn group(&mut self, origin: Origin, group: &Group) -> Result<(), String> {
        if origin == Origin::Snapshot {
            self.snapshot = group.through;
        }
        self.through = self.through.max(group.through);
        let is_old = origin == Origin::Log
            && group.through < self.snapshot
            && !self.may_have_lost_definitions;
        for (_, record) in readable(origin, group) {
            if origin == Origin::Snapshot {
                self.go_on_with(&record);
            }
            match record {
                Record::Definition(_) if is_old => {}
                Record::Definition(DefinitionChange::Is(definition)) => {
                    let name = definition.name.clone();
                    self.definitions.insert(name, definition);
                }
                Record::Definition(DefinitionChange::IsGone(name)) => {
                    self.definitions.remove(&name);
                }
                other => self.record(other),
            }
        }
        Ok(())
    }

    fn lost(&mut self, origin: Origin) {
        self.has_lost_groups = true;
        let part = &mut self.snapshot_part;
        match (origin, part.at) {
            (Origin::Log, _) => self.may_have_lost_definitions = true,
            (_, Part::Definitions) => {
                part.has_gap_in_definitions = true;
                self.may_have_lost_definitions = true;
            }
            (_, Part::Objects) => part.has_gap_behind_rows = true,
            (_, Part::Again) => self.may_have_lost_definitions |= part.has_gap_in_definitions,
        }
    }
}

impl Gathered {
    /// The snapshot goes on with a record.
    fn go_on_with(&mut self, record: &Record<'_>) {
        let part = &mut self.snapshot_part;
        match (record, part.at) {
            (Record::Definition(_), Part::Objects) => {
                part.at = Part::Again;
                // From here on there are all of them, once more.
                self.may_have_lost_definitions &= part.has_gap_behind_rows;
            }
            (Record::Definition(_), _) => {}
            _ => {
                part.at = Part::Objects;
                part.has_gap_behind_rows = false;
            }
        }
    }

    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Object(stored) => {
                self.last_object = self.last_object.max(stored.id);
                if !self.dropped.contains(&stored.id) {
                    self.objects.entry(stored.id).or_insert(stored);
                }
            }
            Record::Dropped(object) => {
                self.objects.remove(&object);
                self.dropped.insert(object);
            }
            Record::Strings(strings) => {
                let known = self.strings.entry((strings.object, strings.column));
                known.or_default().add(strings.first, &strings.strings);
            }
            Record::Ranges(object, ranges) => drop(self.ranges.insert(object, ranges)),
            Record::Rows(commit) => {
                self.last_object = self.last_object.max(commit.object);
                for (first, ..) in &commit.added {
                    self.last_segment = self.last_segment.max(first.segment());
                }
            }
            Record::Chunk(chunk) => {
                self.last_object = self.last_object.max(chunk.object);
                self.last_segment = self.last_segment.max(chunk.segment);
            }
            Record::Definition(_) => {}
        }
    }
}
