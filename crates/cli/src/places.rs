//! Where this user's files are, after the XDG Base Directory Specification.

use std::path::PathBuf;

/// What must survive a restart but not a move to another machine: the prompt's history.
pub fn state() -> Option<PathBuf> {
    under("XDG_STATE_HOME", ".local/state")
}

/// What can be made again.
pub fn cache() -> Option<PathBuf> {
    under("XDG_CACHE_HOME", ".cache")
}

/// Our directory below the variable's, or below its usual place in the home directory. A relative path does not count.
fn under(variable: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(usual)))?;
    Some(base.join("eris"))
}
