//! Which files a name means: one, those of a directory, or those that a pattern matches.

use crate::error::{FileError, FileFaultKind};
use crate::format::Format;
use eris_types::most_similar;
use glob::{MatchOptions, Pattern, PatternError};
use std::path::{Component, Path, PathBuf};
use walkdir::WalkDir;

/// The files, in order of their names.
///
/// # Errors
/// There are none, or a directory cannot be read.
pub(crate) fn expand(
    names: &[String],
    format: Option<Format>,
) -> Result<(Vec<PathBuf>, Format), FileError> {
    let mut files = Vec::new();
    for name in names {
        let found = expand_one(name, format)?;
        if found.is_empty() {
            return Err(none(name));
        }
        files.extend(found);
    }
    let name = names.first().map_or("", String::as_str);
    let named = |file: &PathBuf| Format::of_name(&file.to_string_lossy());
    let Some(format) = format.or_else(|| files.first().and_then(named)) else {
        return Err(FileError::new(name, FileFaultKind::UnknownFormat));
    };
    Ok((files, format))
}

/// The files of one name; none if nothing has it.
pub(crate) fn expand_one(name: &str, format: Option<Format>) -> Result<Vec<PathBuf>, FileError> {
    let path = Path::new(name);
    if path.is_dir() {
        return directory(path, format)
            .map_err(|error| FileError::new(name, FileFaultKind::unreadable(error)));
    }
    // A file of exactly this name comes before a pattern.
    if path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    if name.contains("://") {
        return Err(FileError::new(name, FileFaultKind::Remote));
    }
    if !name.contains(['*', '?', '[']) {
        return Ok(Vec::new());
    }
    let wrong = |error: PatternError| {
        let kind = FileFaultKind::Pattern {
            character: error.pos + 1,
            reason: error.msg,
        };
        FileError::new(name, kind)
    };
    if name.contains("**") {
        return below(name, &Pattern::new(name).map_err(wrong)?);
    }
    let mut files = Vec::new();
    for file in glob::glob(name).map_err(wrong)? {
        let file = file.map_err(|error| FileError::new(name, FileFaultKind::unreadable(error)))?;
        if file.is_file() {
            files.push(file);
        }
    }
    Ok(files)
}

/// The files that match a pattern which goes down into directories. Links to directories are not followed: they may
/// lead back up.
fn below(name: &str, pattern: &Pattern) -> Result<Vec<PathBuf>, FileError> {
    let is_plain =
        |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    let root: PathBuf = Path::new(name).components().take_while(is_plain).collect();
    let here = root.as_os_str().is_empty();
    let options = MatchOptions {
        require_literal_separator: true,
        ..MatchOptions::default()
    };
    if !here && !root.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in WalkDir::new(if here { Path::new(".") } else { &root }).sort_by_file_name() {
        let entry =
            entry.map_err(|error| FileError::new(name, FileFaultKind::unreadable(error)))?;
        let path = match here {
            true => entry.path().strip_prefix(".").unwrap_or(entry.path()),
            false => entry.path(),
        };
        if pattern.matches_path_with(path, options) && path.is_file() {
            files.push(path.to_owned());
        }
    }
    Ok(files)
}

/// The files of a directory that have the format, or that of the first one whose name tells.
fn directory(path: &Path, format: Option<Format>) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        if file.is_file() && Format::of_name(&file.to_string_lossy()).is_some() {
            files.push(file);
        }
    }
    files.sort();
    let of = |file: &PathBuf| Format::of_name(&file.to_string_lossy());
    let wanted = format.or_else(|| files.first().and_then(of));
    files.retain(|file| of(file) == wanted);
    Ok(files)
}

/// The error of a name that means no files.
fn none(name: &str) -> FileError {
    let kind = if Path::new(name).is_dir() {
        FileFaultKind::NothingToRead
    } else if name.contains(['*', '?', '[']) {
        FileFaultKind::NoMatch
    } else {
        FileFaultKind::Missing {
            similar: nearby(name),
        }
    };
    FileError::new(name, kind)
}

/// A file beside the missing one whose name is like it.
fn nearby(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let entries = std::fs::read_dir(parent.unwrap_or(Path::new("."))).ok()?;
    let names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    let wanted = path.file_name()?.to_string_lossy();
    let similar = most_similar(&wanted, names.iter().map(String::as_str))?;
    Some(match parent {
        Some(parent) => parent.join(similar),
        None => similar.into(),
    })
}
