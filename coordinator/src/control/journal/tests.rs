//! How events are logged.

use super::*;
use drover_core::model::PoolId;
use std::io::Write;
use std::sync::Mutex as Lock;

#[derive(Clone, Default)]
struct Page(Arc<Lock<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("lock").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn events_are_logged_as_serious_as_they_are_and_on_one_line() {
    let pool = || PoolId::from("p4");
    let all = [
        Happening::ConfigRefused {
            why: "2 errors:\n  line 3: no such key\n\n  line 9: no unit\n".to_owned(),
        },
        Happening::PoolWarning {
            pool: pool(),
            message: "mind\tthis".to_owned(),
        },
        Happening::PoolReadable { pool: pool() },
    ];
    let page = Page::default();
    let writer = page.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        for happening in all {
            log(&written(7, UnixMs(0), &happening));
        }
    });
    let text = String::from_utf8(page.0.lock().expect("lock").clone()).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (line, level, severity) in [
        (lines[0], " ERROR ", "severity=\"alarm\""),
        (lines[1], " WARN ", "severity=\"warning\""),
        (lines[2], " INFO ", "severity=\"info\""),
    ] {
        assert!(line.contains(level) && line.contains(severity), "{line}");
    }
    let why = "2 errors: line 3: no such key; line 9: no unit";
    assert!(lines[0].contains(why), "{text}");
}
