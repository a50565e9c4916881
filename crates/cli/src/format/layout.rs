//! How a result is laid out, as far as that is the reader's wish and not the format's.

/// The wishes of whoever reads a result.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Whether the columns' names come first.
    pub headers: bool,
    /// What stands for NULL instead of the format's own.
    pub null: Option<String>,
    /// What separates the fields of CSV.
    pub separator: String,
    /// Columns of the screen, into which a table is fitted; `None`: it is as wide as it is.
    pub width: Option<usize>,
    /// The most rows of a table; of more, the first and the last are shown. `None`: all.
    pub rows: Option<usize>,
    /// Whether the output shows colours.
    pub style: bool,
    /// Whether a table becomes one line per value.
    pub expanded: Expanded,
}

/// When a table becomes one line per value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expanded {
    /// Always.
    On,
    /// Never.
    #[default]
    Off,
    /// When it is wider than the screen.
    Auto,
}

/// What of a result its reader can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Everything.
    All,
    /// A part.
    Part {
        /// Rows that are shown, if some are not.
        rows: Option<usize>,
        /// Columns that are shown, and how many there are, if some are not.
        columns: Option<(usize, usize)>,
    },
}

impl Layout {
    /// What stands for NULL among text.
    pub fn null(&self) -> &str {
        self.null.as_deref().unwrap_or("NULL")
    }
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            headers: true,
            null: None,
            separator: ",".to_owned(),
            width: None,
            rows: None,
            style: false,
            expanded: Expanded::Off,
        }
    }
}
