//! Writes the benchmark's files without the shell: `ssbgen SCALE DIRECTORY [parquet|snappy|zstd|tbl] [THREADS]`.

use eris_ssb::{Compression, Generator, Scale, write_parquet, write_tbl};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scale, directory, rest @ ..] = arguments.as_slice() else {
        return Err("usage: ssbgen SCALE DIRECTORY [parquet|snappy|zstd|tbl] [THREADS]".into());
    };
    let generator = Generator::new(scale.parse::<Scale>()?);
    let directory = Path::new(directory);
    let threads = match rest.get(1) {
        Some(threads) => threads.parse()?,
        None => std::thread::available_parallelism()?.get(),
    };
    let begin = Instant::now();
    let mut report = |progress: eris_ssb::Progress| {
        let percent = progress.rows_done * 100 / progress.rows_total;
        eprint!("\r{percent:3} % {:<10}", progress.table);
    };
    let parquet = match rest.first().map(String::as_str) {
        Some("tbl") => None,
        Some("parquet") => Some(Compression::None),
        Some("zstd") => Some(Compression::Zstd),
        None | Some("snappy") => Some(Compression::Snappy),
        Some(other) => return Err(format!("'{other}' is not a format").into()),
    };
    let files = match parquet {
        Some(compression) => {
            write_parquet(&generator, directory, compression, threads, &mut report)?
        }
        None => write_tbl(&generator, directory, threads, &mut report)?,
    };
    eprintln!("\r{:.2} s          ", begin.elapsed().as_secs_f64());
    for file in files {
        println!(
            "{:>12} rows {:>12} bytes  {}",
            file.rows,
            file.bytes,
            file.path.display()
        );
    }
    Ok(())
}
