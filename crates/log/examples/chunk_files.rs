//! What chunk files take beside plain files of the same disk: writing, opening, reading back; and what a log's flush
//! takes meanwhile.
//!
//! ```text
//! cargo run --release -p eris-log --example chunk_files [DIRECTORY [MiB [ROUNDS]]]
//! ```
//!
//! The cases are interleaved, and a line has the median of their rounds. `cold` means that the system keeps nothing of
//! the files, as `dd` has it forget them.

use eris_disk::{Access, Disk, File, RealDisk};
use eris_log::{
    Chunk, ChunkFiles, ChunkSettings, ChunkWriter, DatabaseId, NoRoom, Place, Purpose, chunk_bytes,
};
use eris_types::ObjectId;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::hint::black_box;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const DATABASE: DatabaseId = DatabaseId([7; 16]);
/// 65,536 rows of 24 bytes.
const FORM: usize = 1536 << 10;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let below = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let mebibytes: usize = arguments.next().map_or(Ok(512), |number| number.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |number| number.parse())?;
    let chunks = (mebibytes << 20) / FORM;
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let form: Vec<u8> = (0..FORM as u64).map(|at| ((at * at) >> 7) as u8).collect();
    for _ in 0..rounds {
        let directory = tempfile::tempdir_in(&below)?;
        let mut note = |case, value| times.entry(case).or_default().push(value);
        let speed = |begun: Instant| (chunks * FORM) as f64 / 1e6 / begun.elapsed().as_secs_f64();

        let begun = Instant::now();
        let place = Place {
            database: DATABASE,
            file: 1,
            offset: 64,
        };
        for _ in 0..chunks {
            black_box(place.checksum([black_box(&form[..])]));
        }
        note("checksum MB/s", speed(begun));

        let disk = RealDisk::new(&directory.path().join("plain"));
        disk.create_directory(Path::new(""))?;
        let begun = Instant::now();
        let plain = write_plain(&disk, &form, chunks, 8 << 20)?;
        note("write MB/s: plain, flushed every 8 MiB", speed(begun));
        forget(plain.path())?;
        let begun = Instant::now();
        read_plain(&*plain, chunks)?;
        note("read MB/s: plain, cold", speed(begun));
        let begun = Instant::now();
        read_plain(&*plain, chunks)?;
        note("read MB/s: plain, warm", speed(begun));
        drop(plain);
        disk.remove(Path::new("plain"))?;

        let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(&directory.path().join("chunk files")));
        let begun = Instant::now();
        write_chunks(&disk, &form, chunks, ChunkSettings::default())?;
        note("write MB/s: chunk files", speed(begun));
        let forget = || -> Result<()> {
            for entry in disk.list(Path::new("chunks"))? {
                forget(&disk.root().join("chunks").join(entry.name))?;
            }
            Ok(())
        };
        forget()?;
        let begun = Instant::now();
        let files = ChunkFiles::open(Arc::clone(&disk), DATABASE)?;
        let micros = begun.elapsed().as_secs_f64() * 1e6;
        note(
            "open µs per chunk: chunk files, cold",
            micros / chunks as f64,
        );
        for (threads, cold, warm) in [
            (
                1,
                "read MB/s: chunk files, cold",
                "read MB/s: chunk files, warm",
            ),
            (
                2,
                "read MB/s: chunk files, cold, 2 threads",
                "read MB/s: chunk files, warm, 2 threads",
            ),
        ] {
            forget()?;
            for case in [cold, warm] {
                let begun = Instant::now();
                read_chunks(&files, chunks as u64, threads)?;
                note(case, speed(begun));
            }
        }
        drop(files);
        for entry in disk.list(Path::new("chunks"))? {
            disk.remove(&Path::new("chunks").join(entry.name))?;
        }
        for (dirty, typical, rare) in [
            (
                0,
                "log flush ms: p50, alone",
                "log flush ms: longest, alone",
            ),
            (
                8,
                "log flush ms: p50, beside 8 MiB dirty",
                "log flush ms: longest, beside 8 MiB dirty",
            ),
            (
                16,
                "log flush ms: p50, beside 16 MiB dirty",
                "log flush ms: longest, beside 16 MiB dirty",
            ),
            (
                4096,
                "log flush ms: p50, beside all dirty",
                "log flush ms: longest, beside all dirty",
            ),
        ] {
            let root = directory.path().join(format!("beside {dirty}"));
            let flushes = flushes(&root, dirty, &form, chunks)?;
            let at = |share: f64| flushes[((flushes.len() - 1) as f64 * share) as usize];
            note(typical, at(0.5).as_secs_f64() * 1e3);
            note(rare, at(1.0).as_secs_f64() * 1e3);
            std::fs::remove_dir_all(root)?;
        }
    }
    for (case, mut values) in times {
        values.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        println!(
            "{case:<46}{:>10.2}   ({:.2} to {:.2})",
            at(0.5),
            at(0.0),
            at(1.0)
        );
    }
    Ok(())
}

/// Has the system forget what it keeps of a file.
fn forget(path: &Path) -> Result<()> {
    let input = format!("if={}", path.display());
    let mut dd = Command::new("dd");
    dd.args([&input, "iflag=nocache", "count=0"])
        .stderr(Stdio::null());
    match dd.status()?.success() {
        true => Ok(()),
        false => Err("dd does not know iflag=nocache".into()),
    }
}

fn write_plain(disk: &RealDisk, form: &[u8], chunks: usize, dirty: usize) -> Result<Box<dyn File>> {
    let file = disk.create(Path::new("plain"))?;
    file.allocate((chunks * FORM) as u64)?;
    for chunk in 0..chunks {
        file.write_at(&[IoSlice::new(form)], (chunk * FORM) as u64)?;
        if chunk * FORM / dirty != (chunk + 1) * FORM / dirty {
            file.flush()?;
        }
    }
    file.flush()?;
    Ok(file)
}

fn read_plain(file: &dyn File, chunks: usize) -> Result<()> {
    let mut buffer = vec![0; FORM];
    for chunk in 0..chunks {
        file.read_at(&mut buffer, (chunk * FORM) as u64)?;
    }
    Ok(())
}

/// One thread pushes, another one steps.
fn write_chunks(
    disk: &Arc<dyn Disk>,
    form: &[u8],
    chunks: usize,
    settings: ChunkSettings,
) -> Result<()> {
    let files = ChunkFiles::open(Arc::clone(disk), DATABASE)?;
    let (writer, buffer) = ChunkWriter::go_on(&files, &BTreeSet::new(), 1, settings)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let background = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                writer.prepare()?;
                if !writer.step()? {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
            Ok::<(), eris_log::LogError>(())
        });
        for _ in 0..chunks {
            let room = loop {
                match writer
                    .room()
                    .reserve(chunk_bytes(FORM as u64), Purpose::Adding)
                {
                    Ok(room) => break room,
                    Err(NoRoom::Later) => std::thread::sleep(Duration::from_micros(100)),
                    Err(denied) => return Err(format!("{denied:?}").into()),
                }
            };
            buffer.push(Chunk {
                number: buffer.next_number(),
                object: ObjectId(1),
                rows: 65_536,
                form: Box::new(form.to_vec()),
                room,
            });
        }
        writer.flush()?;
        is_over.store(true, Ordering::SeqCst);
        Ok(background.join().expect("it does not panic")?)
    })?;
    Ok(writer.close()?)
}

fn read_chunks(files: &ChunkFiles, chunks: u64, threads: u64) -> Result<()> {
    let next = AtomicU64::new(1);
    std::thread::scope(|scope| {
        let read = || {
            let mut buffer = vec![0; FORM];
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    number if number > chunks => return Ok(()),
                    number => files.read(number, &mut buffer)?,
                }
            }
        };
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
        let mut ends = readers
            .into_iter()
            .map(|reader| reader.join().expect("it does not panic"));
        ends.try_for_each(|end: std::result::Result<(), eris_log::LogError>| Ok(end?))
    })
}

/// What flushes of 4 KiB take while another thread writes chunks, ascending.
fn flushes(root: &Path, dirty: u64, form: &[u8], chunks: usize) -> Result<Vec<Duration>> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(root));
    disk.create_directory(Path::new(""))?;
    let log = disk.create(Path::new("log"))?;
    log.allocate(64 << 20)?;
    log.flush()?;
    disk.flush_directory(Path::new(""))?;
    assert_eq!(disk.open(Path::new("log"), Access::Read)?.len()?, 64 << 20);
    let settings = ChunkSettings {
        dirty_bytes: dirty << 20,
        ..ChunkSettings::default()
    };
    let (is_over, bytes) = (AtomicBool::new(false), vec![7; 4096]);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let written = match dirty {
                0 => {
                    std::thread::sleep(Duration::from_millis(500));
                    Ok(())
                }
                _ => write_chunks(&disk, form, chunks, settings),
            };
            is_over.store(true, Ordering::SeqCst);
            written.map_err(|error| error.to_string())
        });
        let mut times = Vec::new();
        while !is_over.load(Ordering::SeqCst) {
            let begun = Instant::now();
            log.write_at(&[IoSlice::new(&bytes)], times.len() as u64 % 16_000 * 4096)?;
            log.flush()?;
            times.push(begun.elapsed());
        }
        writing.join().expect("it does not panic")?;
        times.sort_unstable();
        Ok(times)
    })
}
