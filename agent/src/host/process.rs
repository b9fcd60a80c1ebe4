//! Single processes under /proc. Only pids that somebody names are looked at; a process that is gone is no error.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a command line that are kept.
pub const MAX_COMMAND: usize = 256;
/// Bytes of an environment that are searched.
const MAX_ENVIRON: u64 = 256 << 10;
/// Longest name of a request that is taken over.
const MAX_REQUEST: usize = 128;

/// Reads processes.
#[derive(Debug, Clone)]
pub struct Processes {
    proc: PathBuf,
}

impl Processes {
    /// Under this /proc.
    #[must_use]
    pub fn new(proc: &Path) -> Self {
        Self {
            proc: proc.to_owned(),
        }
    }

    /// Start time in ticks since boot (field 22 of stat); `None` when it is gone or a zombie, which holds nothing.
    #[must_use]
    pub fn start_ticks(&self, pid: u32) -> Option<u64> {
        let text = self.read(pid, "stat", 2048)?;
        parse_stat(&String::from_utf8_lossy(&text))
    }

    /// Its user.
    #[must_use]
    pub fn uid(&self, pid: u32) -> Option<u32> {
        Some(
            std::fs::metadata(self.proc.join(pid.to_string()))
                .ok()?
                .uid(),
        )
    }

    /// The command line, words separated by blanks, at most [`MAX_COMMAND`] bytes; the kernel's name in brackets when
    /// it has none.
    #[must_use]
    pub fn command(&self, pid: u32) -> Option<String> {
        let line = self.read(pid, "cmdline", MAX_COMMAND as u64)?;
        if line.is_empty() {
            let name = self.read(pid, "comm", 64)?;
            return Some(format!("[{}]", String::from_utf8_lossy(&name).trim()));
        }
        Some(command_text(&line))
    }

    /// DROVER_REQUEST of its environment; `None` when unset or not readable.
    #[must_use]
    pub fn request(&self, pid: u32) -> Option<String> {
        let environ = self.read(pid, "environ", MAX_ENVIRON)?;
        parse_request(&environ)
    }

    /// DROVER_MOVABLE=1 stands in its environment; not when that cannot be read in full.
    #[must_use]
    pub fn movable(&self, pid: u32) -> bool {
        self.read(pid, "environ", MAX_ENVIRON)
            .is_some_and(|environ| parse_movable(&environ))
    }

    /// All pids. `None` when /proc cannot be listed.
    #[must_use]
    pub fn pids(&self) -> Option<Vec<u32>> {
        let entries = std::fs::read_dir(&self.proc).ok()?;
        Some(
            entries
                .flatten()
                .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
                .collect(),
        )
    }

    /// Largest pid that can exist.
    #[must_use]
    pub fn pid_max(&self) -> u32 {
        super::files::word(&self.proc.join("sys/kernel/pid_max"))
            .and_then(|text| text.parse().ok())
            .unwrap_or(4_194_304)
    }

    fn read(&self, pid: u32, name: &str, limit: u64) -> Option<Vec<u8>> {
        let file = File::open(self.proc.join(pid.to_string()).join(name)).ok()?;
        let mut text = Vec::new();
        file.take(limit).read_to_end(&mut text).ok()?;
        Some(text)
    }
}

/// The name may hold blanks and brackets, so fields count from the last bracket.
fn parse_stat(text: &str) -> Option<u64> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn command_text(line: &[u8]) -> String {
    let mut text: String = String::from_utf8_lossy(line)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    text.truncate(text.trim_end().len());
    while text.len() > MAX_COMMAND {
        text.pop();
    }
    text
}

fn parse_request(environ: &[u8]) -> Option<String> {
    let value = variable(environ, b"DROVER_REQUEST=")?;
    let text = std::str::from_utf8(value).ok()?;
    (!text.is_empty() && text.len() <= MAX_REQUEST && !text.chars().any(char::is_control))
        .then(|| text.to_owned())
}

/// Whatever does not read exactly 1 is no.
fn parse_movable(environ: &[u8]) -> bool {
    variable(environ, b"DROVER_MOVABLE=") == Some(b"1")
}

/// The first one counts, as for a process that looks it up itself.
fn variable<'e>(environ: &'e [u8], name: &[u8]) -> Option<&'e [u8]> {
    environ
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_behind_the_last_bracket() {
        let rest = "1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1000 1";
        assert_eq!(parse_stat(&format!("7 (a) b)) S {rest}")), Some(4711));
        assert_eq!(parse_stat(&format!("7 (a) Z {rest}")), None);
        assert_eq!(parse_stat("7 (a) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_command_is_one_line_and_short() {
        assert_eq!(
            command_text(b"python\0train.py\0--name=\nx\0"),
            "python train.py --name= x"
        );
        let long = command_text("ä".repeat(200).as_bytes());
        assert!(long.len() <= MAX_COMMAND && long.chars().all(|c| c == 'ä'));
    }

    #[test]
    fn the_request_is_one_variable_of_the_environment() {
        let table: [(&[u8], Option<&str>); 5] = [
            (b"A=1\0DROVER_REQUEST=night\0B=2\0", Some("night")),
            (b"XDROVER_REQUEST=night\0", None),
            (b"DROVER_REQUEST=\0", None),
            (b"DROVER_REQUEST=a\nb\0", None),
            (b"", None),
        ];
        for (environ, want) in table {
            assert_eq!(parse_request(environ).as_deref(), want);
        }
    }

    #[test]
    fn only_a_plain_1_says_that_it_can_move() {
        let table: [(&[u8], bool); 6] = [
            (b"A=1\0DROVER_MOVABLE=1\0B=2\0", true),
            (b"DROVER_MOVABLE=0\0DROVER_MOVABLE=1\0", false),
            (b"DROVER_MOVABLE=10\0", false),
            (b"DROVER_MOVABLE=\0", false),
            (b"XDROVER_MOVABLE=1\0", false),
            (b"", false),
        ];
        for (environ, want) in table {
            assert_eq!(parse_movable(environ), want, "{environ:?}");
        }
    }

    #[test]
    fn this_process_is_seen() {
        let processes = Processes::new(Path::new("/proc"));
        let me = std::process::id();
        assert!(processes.start_ticks(me).is_some_and(|ticks| ticks > 0));
        assert_eq!(processes.uid(me), Some(nix::unistd::geteuid().as_raw()));
        assert!(processes.command(me).is_some_and(|line| !line.is_empty()));
        assert_eq!(processes.start_ticks(0), None);
    }
}
