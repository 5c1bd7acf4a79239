//! Writes a log as a supervisor does, and prints the speed: a task's output comes in chunks of 64 KiB.
//!
//! ```text
//! logs DIRECTORY MIB [--line BYTES] [--secrets N]
//! ```
//!
//! Lines have 80 bytes by default; 0 is one line without end. Prints a line of JSON: megabytes per second of this
//! process's CPU time, including kernel time, and its peak memory in KiB.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jobc_job::logs::{Limits, LineFilter, Reader, Redactor, Writer};
use jobc_place::logs::Stream;
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| -> Option<usize> {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1)?.parse().ok()
    };
    let (Some(directory), Some(mebibytes)) =
        (words.first(), words.get(1).and_then(|word| word.parse::<usize>().ok()))
    else {
        eprintln!("logs DIRECTORY MIB [--line BYTES] [--secrets N]");
        std::process::exit(2);
    };
    let line = option("--line").unwrap_or(80);
    let secrets: Vec<String> = (0..option("--secrets").unwrap_or(0))
        .map(|number| format!("{number:04}-secret-value-{number}"))
        .collect();
    let masks = Arc::new(Redactor::new(secrets.iter().map(String::as_bytes)));
    let mut writer = Writer::open(Path::new(directory), Limits::default(), masks);
    let piece = piece(line);
    let began = processor_time();
    let rounds = mebibytes * 16;
    let mut seen = 0_u64;
    for _ in 0..rounds {
        let _ = writer.write(1, Stream::Stdout, &piece, &mut |_| seen += 1);
    }
    let _ = writer.end(1, Stream::Stdout);
    let written = rate(rounds * piece.len(), began);
    let began = processor_time();
    let mut bytes = 0;
    let mut reader = Reader::new([directory.into()], LineFilter::default());
    let mut each = |_: usize, line: &jobc_place::logs::Line<'_>| {
        bytes += line.text.len() + 1;
        Ok(())
    };
    while reader.read(&mut each).unwrap_or(false) {}
    println!(
        r#"{{"written_mb_per_second": {written}, "read_mb_per_second": {}, "lines": {seen}, "lost": {}, "peak_kib": {}}}"#,
        rate(bytes, began),
        writer.lost(),
        peak()
    );
}

/// What is printed at once: English-like text, in lines.
fn piece(line: usize) -> Vec<u8> {
    let text = b"step 1234: loss 0.2131, 1024 samples a second, token limit 4096, 0001 of 9999; ";
    let mut piece: Vec<u8> = text.iter().copied().cycle().take(64 << 10).collect();
    if line > 0 {
        piece.iter_mut().skip(line - 1).step_by(line).for_each(|byte| *byte = b'\n');
    }
    piece
}

fn rate(bytes: usize, since: Duration) -> usize {
    let spent = processor_time().saturating_sub(since);
    bytes / usize::try_from(spent.as_micros()).unwrap_or(usize::MAX).max(1)
}

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// The peak memory of this process (proc_pid_status(5), `VmHWM`).
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()).unwrap_or("0").to_owned()
}
