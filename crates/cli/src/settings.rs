//! What the user can set while the shell runs.

use crate::format::{Expanded, Format, Layout};

/// Rows that are shown of a result that neither fits the screen nor is paged.
const ROWS_UNPAGED: usize = 40;

/// The settings of one shell.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The form of results.
    pub format: Format,
    /// Whether columns' names come first.
    pub headers: bool,
    /// What stands for NULL instead of the format's own.
    pub null: Option<String>,
    /// What separates the fields of CSV.
    pub separator: String,
    /// Whether a table becomes one line per value.
    pub expanded: Expanded,
    /// Whether the time of each statement is told.
    pub timer: bool,
    /// Whether each statement is printed before it runs.
    pub echo: bool,
    /// Whether results that are longer than the screen are paged.
    pub pager: bool,
    /// The most rows of a table on the screen, 0 for all; `None`: it depends on the pager.
    pub max_rows: Option<usize>,
    /// The most columns of the screen that a table takes, 0 for all that there are.
    pub max_width: usize,
}

impl Settings {
    /// The settings of a shell; people expect more than programs.
    pub fn new(format: Format, interactive: bool) -> Self {
        Settings {
            format,
            headers: true,
            null: None,
            separator: ",".to_owned(),
            expanded: Expanded::Off,
            timer: interactive,
            echo: false,
            pager: interactive,
            max_rows: if interactive { None } else { Some(0) },
            max_width: 0,
        }
    }

    /// The layout of results for a screen of so many columns, or for a file.
    pub fn layout(&self, screen: Option<usize>, paged: bool) -> Layout {
        let plain = Layout {
            headers: self.headers,
            null: self.null.clone(),
            separator: self.separator.clone(),
            expanded: self.expanded,
            ..Layout::default()
        };
        let Some(columns) = screen else { return plain };
        let rows = match self.max_rows {
            None if paged => None,
            None => Some(ROWS_UNPAGED),
            Some(0) => None,
            rows => rows,
        };
        Layout {
            width: Some(match self.max_width {
                0 => columns,
                width => width,
            }),
            rows,
            style: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            ..plain
        }
    }
}
