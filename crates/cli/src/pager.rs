//! Results that are longer than the screen, through a program such as `less`.
//!
//! ```text
//! result ──► held, as long as it fits the screen ──► written to the screen at its end
//!                 └── it does not ──► pager's standard input, as fast as its reader reads
//! ```
//!
//! Whoever quits the pager has seen what he wanted: the rest of the result is not computed.

use crate::output::{Output, Size};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Lines of the screen that the prompt and the end of the result need.
const RESERVED: usize = 2;

/// One result on its way to the screen.
pub struct Screen<'a> {
    out: &'a mut Output,
    /// `None`: it is not paged.
    pager: Option<Pager>,
    held: Vec<u8>,
    lines: usize,
    child: Option<Child>,
    quit: bool,
}

/// A program that shows a page at a time.
#[derive(Clone, Debug)]
pub struct Pager {
    command: String,
    lines: usize,
}

impl Pager {
    /// The user's pager for this screen: of ERIS_PAGER, of PAGER, or `less`. `None` if it is not installed or set to
    /// nothing.
    pub fn find(screen: Size) -> Option<Pager> {
        let set = |name| std::env::var(name).ok();
        let command = set("ERIS_PAGER").or_else(|| set("PAGER"));
        let command = command.unwrap_or_else(|| "less -SRFX".to_owned());
        let program = command.split_whitespace().next()?;
        is_program(program).then(|| Pager {
            lines: screen.rows.saturating_sub(RESERVED),
            command,
        })
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // A plain `less` would show escape sequences as text.
            command.env("LESS", "SRFX");
        }
        command.spawn()
    }
}

/// Whether the shell would find it.
fn is_program(name: &str) -> bool {
    if name.contains('/') {
        return Path::new(name).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

impl<'a> Screen<'a> {
    /// One result, paged or not.
    pub fn new(out: &'a mut Output, pager: Option<Pager>) -> Self {
        Screen {
            out,
            pager,
            held: Vec::new(),
            lines: 0,
            child: None,
            quit: false,
        }
    }

    /// Whether the reader has left the pager before the end.
    pub fn has_quit(&self) -> bool {
        self.quit
    }

    /// The result is complete; returns when its reader has seen it.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&std::mem::take(&mut self.held))?;
        self.out.flush()
    }

    fn feed(&mut self, bytes: &[u8]) -> io::Result<()> {
        let child = self.child.as_mut().expect("called while there is one");
        let input = child.stdin.as_mut().expect("taken only by drop");
        let written = input.write_all(bytes);
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        self.quit = written.as_ref().is_err_and(gone);
        written
    }
}

impl Write for Screen<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(pager) = &self.pager else {
            return self.out.write(bytes);
        };
        if self.child.is_some() {
            self.feed(bytes)?;
            return Ok(bytes.len());
        }
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        self.held.extend_from_slice(bytes);
        if self.lines > pager.lines {
            self.out.flush()?;
            self.child = Some(pager.start()?);
            let held = std::mem::take(&mut self.held);
            self.feed(&held)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match (&self.pager, &mut self.child) {
            (None, _) => self.out.flush(),
            (Some(_), _) => Ok(()),
        }
    }
}

impl Drop for Screen<'_> {
    /// The terminal is ours again only when the pager has ended.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
