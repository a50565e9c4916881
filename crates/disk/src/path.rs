//! Paths within the database's directory.

use crate::error::Reason;
use std::ffi::OsStr;
use std::path::{Component, Path};

/// The names that a path consists of. The empty path has none: it is the database's directory itself.
pub(crate) fn names(path: &Path) -> Result<Vec<&OsStr>, Reason> {
    path.components()
        .map(|component| match component {
            Component::Normal(name) => Ok(name),
            _ => Err(Reason::Outside),
        })
        .collect()
}

/// The directory of a file or directory, and its name there.
pub(crate) fn split(path: &Path) -> Result<(&Path, &OsStr), Reason> {
    names(path)?;
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(Reason::Outside),
    }
}

/// The one directory that two names are in.
pub(crate) fn common<'a>(from: &'a Path, to: &Path) -> Result<&'a Path, Reason> {
    let (from, _) = split(from)?;
    let (to, _) = split(to)?;
    if from == to {
        Ok(from)
    } else {
        Err(Reason::OtherDirectory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_within_the_directory() {
        assert_eq!(
            names(Path::new("log/7")),
            Ok(vec![OsStr::new("log"), OsStr::new("7")])
        );
        assert_eq!(names(Path::new("")), Ok(vec![]));
        for outside in ["/etc/passwd", "../other", "log/../../other", "./log"] {
            assert_eq!(names(Path::new(outside)), Err(Reason::Outside), "{outside}");
        }
        assert_eq!(
            split(Path::new("log/7")),
            Ok((Path::new("log"), OsStr::new("7")))
        );
        assert_eq!(
            split(Path::new("lock")),
            Ok((Path::new(""), OsStr::new("lock")))
        );
        assert_eq!(split(Path::new("")), Err(Reason::Outside));
        assert_eq!(
            common(Path::new("log/7"), Path::new("log/8")),
            Ok(Path::new("log"))
        );
        assert_eq!(
            common(Path::new("log/7"), Path::new("8")),
            Err(Reason::OtherDirectory)
        );
    }
}
