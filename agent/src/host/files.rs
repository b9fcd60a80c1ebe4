//! Small files of /proc that are read every tick: opened once, read again at offset 0.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// No file that is read here is longer (10,000 interfaces in net/dev are 1.3 MB).
const MAX_BYTES: usize = 2 << 20;

/// A file that stays open.
#[derive(Debug)]
pub struct KeptFile {
    path: PathBuf,
    file: Option<File>,
}

impl KeptFile {
    /// Opens it at the first read.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Its first `length` bytes, in one read; `None` when it cannot be read.
    pub fn head<'a>(&mut self, buffer: &'a mut Vec<u8>, length: usize) -> Option<&'a str> {
        buffer.resize(length, 0);
        let got = self.read(buffer, 0)?;
        buffer.truncate(got);
        valid(buffer)
    }

    /// All of it; `None` when it cannot be read.
    pub fn all<'a>(&mut self, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
        let mut filled = 0;
        loop {
            buffer.resize(filled + 8192, 0);
            let got = self.read(&mut buffer[filled..], filled as u64)?;
            filled += got;
            if got == 0 || filled > MAX_BYTES {
                break;
            }
        }
        buffer.truncate(filled);
        valid(buffer)
    }

    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Option<usize> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let got = self.file.as_ref()?.read_at(buffer, offset);
        if got.is_err() {
            self.file = None;
        }
        got.ok()
    }
}

fn valid(buffer: &[u8]) -> Option<&str> {
    match std::str::from_utf8(buffer) {
        Ok(text) => Some(text),
        // A cut character at the end is no reason to lose the rest.
        Err(error) => std::str::from_utf8(&buffer[..error.valid_up_to()]).ok(),
    }
}

/// A whole small file, trimmed; `None` when it cannot be read or is empty.
#[must_use]
pub fn word(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
