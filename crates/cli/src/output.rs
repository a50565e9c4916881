//! Where results go: standard output, or the file of `\o`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::Path;
use terminal_size::{Height, Width, terminal_size};

/// The destination of results.
pub struct Output {
    stdout: BufWriter<Stdout>,
    is_terminal: bool,
    file: Option<BufWriter<File>>,
}

/// The size of a screen in characters.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Its width.
    pub columns: usize,
    /// Its height.
    pub rows: usize,
}

impl Output {
    /// Standard output.
    pub fn standard() -> Self {
        let stdout = io::stdout();
        Output {
            is_terminal: stdout.is_terminal(),
            stdout: BufWriter::new(stdout),
            file: None,
        }
    }

    /// Results go to this file from now on, which is emptied; `None`: to standard output again.
    pub fn redirect(&mut self, file: Option<&Path>) -> io::Result<()> {
        let file = file.map(File::create).transpose()?;
        if let Some(mut before) = self.file.take() {
            before.flush()?;
        }
        self.file = file.map(BufWriter::new);
        Ok(())
    }

    /// The screen on which results appear, if they do.
    pub fn screen(&self) -> Option<Size> {
        if !self.is_terminal || self.file.is_some() {
            return None;
        }
        let (Width(columns), Height(rows)) = terminal_size()?;
        (columns > 0 && rows > 0).then_some(Size {
            columns: columns.into(),
            rows: rows.into(),
        })
    }

    /// Whether results appear on a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal && self.file.is_none()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => self.stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.flush(),
            None => self.stdout.flush(),
        }
    }
}
