//! Reads and writes that are whole, whatever part of them the operating system does at a time.

use rustix::io::Errno;
use std::io::IoSlice;

/// The most slices that Linux takes at once.
const MOST_SLICES: usize = 1024;

/// Writes all of `slices` at `offset` by calls of `write`, which says how many bytes of what it was given it has
/// written. Interrupted calls are repeated.
pub(crate) fn write_whole(
    slices: &[IoSlice<'_>],
    offset: u64,
    mut write: impl FnMut(&[IoSlice<'_>], u64) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let total: usize = slices.iter().map(|slice| slice.len()).sum();
    let Some(begin) = slices.iter().position(|slice| !slice.is_empty()) else {
        return Ok(());
    };
    let slices = &slices[begin..];
    let mut step = |slices: &[IoSlice<'_>], offset| match write(slices, offset) {
        Err(Errno::INTR) => Ok(0),
        // A disk that takes nothing of something would keep us here without end.
        Ok(0) => Err(Errno::IO),
        other => other,
    };
    let first = step(&slices[..slices.len().min(MOST_SLICES)], offset)?;
    if first == total {
        return Ok(());
    }
    // The slices are copied only here: the usual write is whole at once.
    let mut rest = slices.to_vec();
    let mut rest = rest.as_mut_slice();
    let mut done = first;
    IoSlice::advance_slices(&mut rest, first);
    while done < total {
        let written = step(&rest[..rest.len().min(MOST_SLICES)], offset + done as u64)?;
        IoSlice::advance_slices(&mut rest, written);
        done += written;
    }
    Ok(())
}

/// Fills `buffer` from `offset` on by calls of `read`, which says how many bytes it has read. Interrupted calls are
/// repeated. `false` says that the file ends before.
pub(crate) fn read_whole(
    buffer: &mut [u8],
    offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<usize, Errno>,
) -> Result<bool, Errno> {
    let mut done = 0;
    while done < buffer.len() {
        match read(&mut buffer[done..], offset + done as u64) {
            Ok(0) => return Ok(false),
            Ok(bytes) => done += bytes,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Random;

    #[test]
    fn short_and_interrupted_calls_are_continued() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let parts: Vec<Vec<u8>> = (0..random.below(5))
                .map(|_| {
                    (0..random.below(40))
                        .map(|_| random.below(256) as u8)
                        .collect()
                })
                .collect();
            let slices: Vec<IoSlice> = parts.iter().map(|part| IoSlice::new(part)).collect();
            let expected = parts.concat();
            let mut file = vec![0; 7];
            write_whole(&slices, 7, |slices, offset| {
                if random.below(3) == 0 {
                    return Err(Errno::INTR);
                }
                let given: Vec<u8> = slices
                    .iter()
                    .flat_map(|slice| slice.iter().copied())
                    .collect();
                assert_eq!(file.len() as u64, offset, "seed {seed}");
                let some = 1 + random.below(given.len() as u64) as usize;
                file.extend(&given[..some]);
                Ok(some)
            })
            .unwrap();
            assert_eq!(file[7..], expected, "seed {seed}");

            let mut found = vec![0; expected.len()];
            let mut read = |buffer: &mut [u8], offset: u64| {
                if random.below(3) == 0 {
                    return Err(Errno::INTR);
                }
                let left = &file[(offset as usize).min(file.len())..];
                let some = (random.below(buffer.len() as u64) as usize + 1).min(left.len());
                buffer[..some].copy_from_slice(&left[..some]);
                Ok(some)
            };
            assert_eq!(read_whole(&mut found, 7, &mut read), Ok(true));
            assert_eq!(found, expected, "seed {seed}");
            found.push(0);
            assert_eq!(read_whole(&mut found, 7, &mut read), Ok(false));
        }
    }

    #[test]
    fn more_slices_than_linux_takes_are_written_in_parts() {
        let bytes: Vec<u8> = (0..3000).map(|n| n as u8).collect();
        let mut slices = vec![IoSlice::new(b""); 2000];
        slices.extend(bytes.chunks(1).map(IoSlice::new));
        let mut file = Vec::new();
        write_whole(&slices, 0, |slices, _| {
            assert!(slices.len() <= MOST_SLICES);
            slices
                .iter()
                .for_each(|slice| file.extend_from_slice(slice));
            Ok(slices.len())
        })
        .unwrap();
        assert_eq!(file, bytes);
    }

    #[test]
    fn a_disk_that_takes_nothing_is_an_error() {
        let written = write_whole(&[IoSlice::new(b"some")], 0, |_, _| Ok(0));
        assert_eq!(written, Err(Errno::IO));
        assert_eq!(
            write_whole(&[IoSlice::new(b"")], 0, |_, _| unreachable!()),
            Ok(())
        );
    }
}
