//! Plain files of the kernel below a root directory: texts, numbers, lists, numbered directories.

use crate::error::TopologyError;
use crate::list;
use std::io;
use std::path::{Path, PathBuf};

/// Files under a root directory, by relative path. A file that is not there is `None`, never an error.
pub(crate) struct Files<'a> {
    root: &'a Path,
}

impl<'a> Files<'a> {
    pub(crate) fn new(root: &'a Path) -> Self {
        Files { root }
    }

    pub(crate) fn text(&self, path: &str) -> Result<Option<String>, TopologyError> {
        absent(std::fs::read_to_string(self.root.join(path)), || {
            self.root.join(path)
        })
    }

    pub(crate) fn number(&self, path: &str) -> Result<Option<u64>, TopologyError> {
        let Some(text) = self.text(path)? else {
            return Ok(None);
        };
        text.trim()
            .parse()
            .map(Some)
            .map_err(|_| self.wrong(path, "a number", &text))
    }

    pub(crate) fn list(&self, path: &str) -> Result<Option<Vec<u32>>, TopologyError> {
        let Some(text) = self.text(path)? else {
            return Ok(None);
        };
        list::parse(&text)
            .map(Some)
            .ok_or_else(|| self.wrong(path, "a list such as 0-3,8", &text))
    }

    /// Directory entries named prefix, number, suffix: their numbers ascending with their paths.
    pub(crate) fn numbered(
        &self,
        directory: &str,
        prefix: &str,
        suffix: &str,
    ) -> Result<Vec<(u32, String)>, TopologyError> {
        let path = || self.root.join(directory);
        let Some(entries) = absent(std::fs::read_dir(path()), path)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry
                .map_err(|source| TopologyError::Read {
                    path: path(),
                    source,
                })?
                .file_name();
            let name = name.to_string_lossy();
            let digits = name
                .strip_prefix(prefix)
                .and_then(|rest| rest.strip_suffix(suffix));
            if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
                found.push((number, format!("{directory}/{name}")));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    pub(crate) fn wrong(&self, path: &str, expected: &'static str, found: &str) -> TopologyError {
        let found = found.trim().chars().take(80).collect();
        TopologyError::Parse {
            path: self.root.join(path),
            expected,
            found,
        }
    }
}

fn absent<T>(
    result: io::Result<T>,
    path: impl Fn() -> PathBuf,
) -> Result<Option<T>, TopologyError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(source) => Err(TopologyError::Read {
            path: path(),
            source,
        }),
    }
}
