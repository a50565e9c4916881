//! Page sizes: the base page, transparent huge pages, and pools of reserved huge pages.

use crate::error::TopologyError;
use crate::files::Files;
use serde::Serialize;
use std::path::Path;

/// What page sizes the machine offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageSizes {
    /// The base page in bytes.
    pub base: u64,
    /// When the kernel backs ordinary memory with huge pages by itself.
    pub transparent: TransparentHuge,
    /// Size of a transparent huge page in bytes; `None` if the kernel has none.
    pub transparent_bytes: Option<u64>,
    /// Pools of reserved huge pages, ascending by page size. Eris does not draw on them; they explain missing memory.
    pub pools: Vec<HugePool>,
}

/// The kernel's mode for transparent huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TransparentHuge {
    /// Wherever they fit.
    Always,
    /// Where a program asks for them.
    Madvise,
    /// Nowhere.
    Never,
    /// The kernel was built without them.
    #[default]
    Absent,
}

/// A pool of reserved huge pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HugePool {
    /// Size of one page in bytes.
    pub page_bytes: u64,
    /// Pages in the pool.
    pub pages: u64,
    /// Pages of it that nobody uses.
    pub free: u64,
}

impl PageSizes {
    pub(crate) fn read(files: &Files) -> Result<Self, TopologyError> {
        const TRANSPARENT: &str = "sys/kernel/mm/transparent_hugepage";
        let transparent = match files.text(&format!("{TRANSPARENT}/enabled"))? {
            None => TransparentHuge::Absent,
            // The mode in force stands in brackets: "always [madvise] never".
            Some(text) if text.contains("[always]") => TransparentHuge::Always,
            Some(text) if text.contains("[madvise]") => TransparentHuge::Madvise,
            Some(_) => TransparentHuge::Never,
        };
        let mut pools = Vec::new();
        for (page_kib, directory) in
            files.numbered("sys/kernel/mm/hugepages", "hugepages-", "kB")?
        {
            let count = |file: &str| {
                Ok::<u64, TopologyError>(files.number(&format!("{directory}/{file}"))?.unwrap_or(0))
            };
            pools.push(HugePool {
                page_bytes: u64::from(page_kib) * 1024,
                pages: count("nr_hugepages")?,
                free: count("free_hugepages")?,
            });
        }
        Ok(PageSizes {
            base: crate::os::page_bytes() as u64,
            transparent,
            transparent_bytes: files.number(&format!("{TRANSPARENT}/hpage_pmd_size"))?,
            pools,
        })
    }

    /// As [`PageSizes::read`], but the base page alone where the files are unreadable.
    pub(crate) fn of_process(root: &Path) -> Self {
        let base = PageSizes {
            base: crate::os::page_bytes() as u64,
            ..PageSizes::default()
        };
        if cfg!(miri) {
            base
        } else {
            Self::read(&Files::new(root)).unwrap_or(base)
        }
    }
}
