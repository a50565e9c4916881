//! Where a file's data lie: names of directories that the other database's runner fills in.

use std::path::Path;
use tempfile::TempDir;

/// The directories of one file.
pub struct Places {
    /// What its statements write. It goes with this.
    scratch: TempDir,
    /// The directory above `test` that has `data`, too.
    root: Option<String>,
}

impl Places {
    /// # Errors
    /// No directory can be made.
    pub fn of(file: &Path) -> std::io::Result<Places> {
        let full = file.canonicalize()?;
        let root = full.ancestors().find(|above| above.join("data").is_dir());
        Ok(Places {
            scratch: TempDir::new()?,
            root: root.map(|root| root.display().to_string()),
        })
    }

    /// The text with the directories filled in.
    pub fn fill(&self, text: &str) -> String {
        let scratch = self.scratch.path().display().to_string();
        let mut filled = text.to_owned();
        for name in [
            "{TEST_DIR}",
            "{TEMP_DIR}",
            "{TEMP_DIR_ABSOLUTE}",
            "__TEST_DIR__",
        ] {
            filled = filled.replace(name, &scratch);
        }
        match &self.root {
            None => filled,
            Some(root) => filled
                .replace("{DATA_DIR}", &format!("{root}/data"))
                .replace("__WORKING_DIRECTORY__", root)
                .replace("{WORKING_DIR}", root)
                .replace("'data/", &format!("'{root}/data/")),
        }
    }
}
