//! An open file of a simulated disk.

use super::names::Inode;
use super::state::State;
use super::{Call, SimulatedDisk, whole};
use crate::error::{DiskError, Extent, Operation, Reason};
use crate::interface::{Access, File, asked_room};
use crate::whole::{read_whole, write_whole};
use rustix::io::Errno;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct SimulatedFile {
    disk: SimulatedDisk,
    inode: Inode,
    /// The path, within the database's directory and as messages show it.
    within: PathBuf,
    shown: PathBuf,
    access: Access,
}

impl SimulatedFile {
    pub(super) fn new(disk: SimulatedDisk, inode: Inode, path: &Path, access: Access) -> Self {
        SimulatedFile {
            disk,
            inode,
            within: path.to_path_buf(),
            shown: whole(path),
            access,
        }
    }

    fn call(&self, operation: Operation, extent: Option<Extent>) -> Call<'_> {
        Call {
            operation,
            path: &self.within,
            extent,
        }
    }

    fn writable(&self) -> Result<(), Reason> {
        if self.access == Access::Read {
            Err(Reason::ReadOnly)
        } else {
            Ok(())
        }
    }

    /// Writes as the system does: what finds room, and if writes are to be short, a part of what it is given.
    fn write(&self, state: &mut State, slices: &[IoSlice<'_>], offset: u64) -> Result<(), Errno> {
        write_whole(slices, offset, |slices, offset| {
            let bytes: Vec<u8> = slices
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .collect();
            let mut some = bytes.len() as u64;
            if state.short_writes {
                if state.random.below(4) == 0 {
                    return Err(Errno::INTR);
                }
                some = 1 + state.random.below(some);
            }
            let free = state.free();
            let content = state.content(self.inode);
            if let Some(free) = free {
                some = content.fitting(offset, some, free);
            }
            content.write(&bytes[..some as usize], offset);
            if some == 0 {
                Err(Errno::NOSPC)
            } else {
                Ok(some as usize)
            }
        })
    }

    /// Writes by chance the beginning of what was asked for, all of it or nothing, as a write that fails does.
    fn write_some(
        &self,
        state: &mut State,
        slices: &[IoSlice<'_>],
        offset: u64,
    ) -> Result<(), Errno> {
        let bytes: Vec<u8> = slices
            .iter()
            .flat_map(|slice| slice.iter().copied())
            .collect();
        let some = state.random.below(bytes.len() as u64 + 1) as usize;
        self.write(state, &[IoSlice::new(&bytes[..some])], offset)
    }
}

impl File for SimulatedFile {
    fn path(&self) -> &Path {
        &self.shown
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        let extent = Extent {
            bytes: buffer.len() as u64,
            offset: Some(offset),
        };
        self.disk
            .run_or_fail(self.call(Operation::Read, Some(extent)), |state, _| {
                state.longest_read = state.longest_read.max(extent.bytes);
                let content = state.content(self.inode);
                if content.is_worn(offset, extent.bytes) {
                    return Err(Reason::of(Errno::IO, extent.bytes, || None));
                }
                let read = read_whole(buffer, offset, |buffer, offset| {
                    Ok(content.read(buffer, offset))
                });
                match read {
                    Ok(false) => Err(Reason::EndOfFile { len: content.len() }),
                    _ => Ok(()),
                }
            })
    }

    fn write_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<(), DiskError> {
        let bytes = slices.iter().map(|slice| slice.len() as u64).sum();
        let extent = Extent {
            bytes,
            offset: Some(offset),
        };
        self.disk.run_or_fail(
            self.call(Operation::Write, Some(extent)),
            |state, goes_well| {
                self.writable()?;
                let written = match goes_well {
                    true => self.write(state, slices, offset),
                    false => self.write_some(state, slices, offset),
                };
                written.map_err(|errno| Reason::of(errno, bytes, || state.free()))
            },
        )
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        let extent = Extent {
            bytes: len,
            offset: None,
        };
        self.disk.run_or_fail(
            self.call(Operation::Allocate, Some(extent)),
            |state, goes_well| {
                self.writable()?;
                let free = state.free();
                let content = state.content(self.inode);
                if let Some(free) = free.filter(|free| content.fitting(0, len, *free) < len) {
                    let asked = asked_room(len, content.len());
                    return Err(Reason::Full {
                        asked,
                        free: Some(free),
                    });
                }
                if goes_well {
                    content.allocate(len);
                }
                Ok(())
            },
        )
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        let extent = Extent {
            bytes: len,
            offset: None,
        };
        self.disk.run_or_fail(
            self.call(Operation::SetLen, Some(extent)),
            |state, goes_well| {
                self.writable()?;
                if goes_well {
                    state.content(self.inode).set_len(len);
                }
                Ok(())
            },
        )
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.disk
            .run_or_fail(self.call(Operation::Len, None), |state, _| {
                Ok(state.content(self.inode).len())
            })
    }

    fn flush(&self) -> Result<(), DiskError> {
        self.disk
            .run_or_fail(self.call(Operation::Flush, None), |state, goes_well| {
                state.flush(self.inode, goes_well);
                Ok(())
            })
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut state = self.disk.locked();
        if !state.stopped {
            state.closed(self.inode);
        }
    }
}
