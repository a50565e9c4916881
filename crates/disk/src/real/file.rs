//! An open file of a real directory.

use super::failed::{Failed, Identity};
use super::free;
use crate::error::{DiskError, Extent, Operation, Reason};
use crate::interface::{Access, File, asked_room};
use crate::whole::{read_whole, write_whole};
use rustix::fs::{self, FallocateFlags};
use rustix::io::{self, Errno, retry_on_intr};
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Zeros that are written at once where room cannot be reserved.
const ZEROS: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct RealFile {
    fd: OwnedFd,
    path: PathBuf,
    access: Access,
    failed: Arc<Failed>,
    identity: Identity,
    /// One flush at a time: of two by one handle the system would tell only one that pages were lost.
    flushing: Mutex<()>,
}

impl RealFile {
    pub(super) fn new(
        fd: OwnedFd,
        path: &Path,
        access: Access,
        (failed, identity): (Arc<Failed>, Identity),
    ) -> Self {
        RealFile {
            fd,
            path: path.to_path_buf(),
            access,
            failed,
            identity,
            flushing: Mutex::default(),
        }
    }

    /// An error if the file must not be changed.
    fn writable(&self) -> Result<(), Reason> {
        if self.access == Access::Read {
            return Err(Reason::ReadOnly);
        }
        self.failed.check(self.identity)
    }

    /// The error of an operation about `bytes`.
    fn reason(&self, errno: Errno, bytes: u64) -> Reason {
        Reason::of(errno, bytes, || self.free())
    }

    /// The bytes that are free, where the file system says so.
    fn free(&self) -> Option<u64> {
        fs::fstatvfs(&self.fd).ok().as_ref().and_then(free)
    }

    fn length(&self) -> Result<u64, Errno> {
        Ok(fs::fstat(&self.fd)?.st_size as u64)
    }

    fn reserve(&self, len: u64) -> Result<(), Errno> {
        if len == 0 {
            return Ok(());
        }
        match retry_on_intr(|| fs::fallocate(&self.fd, FallocateFlags::empty(), 0, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(len),
            other => other,
        }
    }

    /// Stores zeros from the end of the file up to `len`.
    fn write_zeros(&self, len: u64) -> Result<(), Errno> {
        let zeros = vec![0; ZEROS];
        let mut end = self.length()?;
        while end < len {
            let some = (len - end).min(ZEROS as u64);
            let slice = IoSlice::new(&zeros[..some as usize]);
            write_whole(&[slice], end, |slices, offset| {
                io::pwritev(&self.fd, slices, offset)
            })?;
            end += some;
        }
        Ok(())
    }

    /// Reserves room by `reserve`. A file that has grown for nothing is cut off again.
    fn allocate_by(
        &self,
        len: u64,
        reserve: impl FnOnce(&Self, u64) -> Result<(), Errno>,
    ) -> Result<(), Reason> {
        self.writable()?;
        let found = fs::fstat(&self.fd).map_err(|errno| self.reason(errno, len))?;
        let (before, taken) = (found.st_size as u64, found.st_blocks as u64 * 512);
        let asked = asked_room(len, before);
        // ext4 reserves what there is before it says that it is not enough. Meanwhile nobody else could write.
        if let Some(free) = self.free().filter(|free| len.saturating_sub(taken) > *free) {
            return Err(Reason::Full {
                asked,
                free: Some(free),
            });
        }
        reserve(self, len).map_err(|errno| {
            let reason = self.reason(errno, asked);
            if self.length() != Ok(before) {
                // The first error is the one to tell, and a longer file is no worse than that.
                let _ = retry_on_intr(|| fs::ftruncate(&self.fd, before));
            }
            reason
        })
    }

    fn error(
        &self,
        operation: Operation,
        bytes: u64,
        offset: Option<u64>,
    ) -> impl Fn(Reason) -> DiskError {
        move |reason| reason.within(operation, &self.path, Some(Extent { bytes, offset }))
    }
}

impl File for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        let bytes = buffer.len() as u64;
        let error = self.error(Operation::Read, bytes, Some(offset));
        let read = read_whole(buffer, offset, |buffer, offset| {
            io::pread(&self.fd, buffer, offset)
        });
        match read.map_err(|errno| error(self.reason(errno, bytes)))? {
            true => Ok(()),
            false => Err(error(Reason::EndOfFile { len: self.len()? })),
        }
    }

    fn write_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<(), DiskError> {
        let write = || {
            self.writable()?;
            write_whole(slices, offset, |slices, offset| {
                io::pwritev(&self.fd, slices, offset)
            })
            .map_err(|errno| self.reason(errno, bytes_of(slices)))
        };
        write()
            .map_err(|reason| self.error(Operation::Write, bytes_of(slices), Some(offset))(reason))
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        self.allocate_by(len, RealFile::reserve)
            .map_err(self.error(Operation::Allocate, len, None))
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        let set = || {
            self.writable()?;
            retry_on_intr(|| fs::ftruncate(&self.fd, len)).map_err(|errno| self.reason(errno, len))
        };
        set().map_err(self.error(Operation::SetLen, len, None))
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.length()
            .map_err(|errno| self.reason(errno, 0).at(Operation::Len, &self.path))
    }

    fn flush(&self) -> Result<(), DiskError> {
        let _alone = self.flushing.lock().expect("a flush does not panic");
        self.failed
            .flush(self.identity, || fs::fdatasync(&self.fd))
            .map_err(|reason| reason.at(Operation::Flush, &self.path))
    }
}

fn bytes_of(slices: &[IoSlice<'_>]) -> u64 {
    slices.iter().map(|slice| slice.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device or a file by its name in the system, which a disk would not open.
    fn raw(path: &str) -> RealFile {
        again(path, Arc::default())
    }

    fn again(path: &str, failed: Arc<Failed>) -> RealFile {
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let identity = Identity::of(&fs::fstat(&file).unwrap());
        RealFile::new(
            file.into(),
            Path::new(path),
            Access::ReadWrite,
            (failed, identity),
        )
    }

    fn reason_of<T: std::fmt::Debug>(result: Result<T, DiskError>) -> Reason {
        result.unwrap_err().reason
    }

    #[test]
    fn a_failed_flush_is_never_tried_again_by_whatever_handle() {
        // A device that cannot be flushed: EINVAL.
        let file = raw("/dev/zero");
        let other = again("/dev/zero", file.failed.clone());
        let unlike = again("/dev/null", file.failed.clone());
        file.write_at(&[IoSlice::new(b"lost")], 0).unwrap();
        other.write_at(&[IoSlice::new(b"lost")], 0).unwrap();
        assert_eq!(
            reason_of(file.flush()),
            Reason::System(Errno::INVAL.raw_os_error())
        );
        for handle in [&file, &other] {
            assert_eq!(reason_of(handle.flush()), Reason::FlushFailed);
            assert_eq!(
                reason_of(handle.write_at(&[IoSlice::new(b"more")], 0)),
                Reason::FlushFailed
            );
            assert_eq!(reason_of(handle.set_len(0)), Reason::FlushFailed);
            assert_eq!(reason_of(handle.allocate(8)), Reason::FlushFailed);
            handle.read_at(&mut [1; 8], 0).unwrap();
        }
        unlike.write_at(&[IoSlice::new(b"kept")], 0).unwrap();
        file.failed.forget(file.identity);
        other.write_at(&[IoSlice::new(b"new")], 0).unwrap();
    }

    #[test]
    fn a_full_disk_is_told_with_what_was_asked() {
        let error = raw("/dev/full")
            .write_at(&[IoSlice::new(&[7; 4096]), IoSlice::new(b"8")], 0)
            .unwrap_err();
        assert_eq!(
            error.extent,
            Some(Extent {
                bytes: 4097,
                offset: Some(0)
            })
        );
        assert!(
            matches!(
                error.reason,
                Reason::Full {
                    asked: 4097,
                    free: Some(_)
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn zeros_stand_for_room_where_none_can_be_reserved_and_a_failure_leaves_the_length() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let file = raw(named.path().to_str().unwrap());
        file.write_at(&[IoSlice::new(b"begin")], 0).unwrap();
        let len = 2 * ZEROS as u64 + 77;
        file.allocate_by(len, RealFile::write_zeros).unwrap();
        let mut found = vec![1; len as usize];
        file.read_at(&mut found, 0).unwrap();
        assert!(found.starts_with(b"begin") && found[5..].iter().all(|byte| *byte == 0));

        let failing = |file: &RealFile, len| file.write_zeros(len).and(Err(Errno::NOSPC));
        let reason = file.allocate_by(len + 100, failing).unwrap_err();
        assert!(
            matches!(
                reason,
                Reason::Full {
                    asked: 100,
                    free: Some(_)
                }
            ),
            "{reason}"
        );
        assert_eq!(file.len().unwrap(), len);
    }
}
