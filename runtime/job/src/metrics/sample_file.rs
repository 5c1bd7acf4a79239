//! The file of samples, and how it stays small.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::sample::Sample;
use jobc_sys::id::TaskId;
use jobc_sys::write_atomic::{Durability, write_atomic};

/// Maximum bytes of the file.
const MAX_BYTES: u64 = 16 << 20;

/// The file of samples. When it is too large, every second sample of each task is removed, and from then on only half
/// as many are written: the samples of a task are spread evenly over its time. Last samples of attempts stay.
#[derive(Debug)]
pub struct SampleFile {
    path: PathBuf,
    file: Option<(File, u64)>,
    max_bytes: u64,
    /// One of this many samples of a task is written.
    step: u32,
    /// How many samples of a task came since the last one that was written.
    skipped: BTreeMap<TaskId, u32>,
}

impl SampleFile {
    /// The samples in a file, which need not be there yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, max_bytes: MAX_BYTES, step: 1, skipped: BTreeMap::new() }
    }

    /// Appends samples in one write, so that readers see whole lines.
    pub fn push(&mut self, samples: &[Sample]) -> io::Result<()> {
        let mut lines = Vec::with_capacity(samples.len() * 192);
        for sample in samples {
            if self.is_wanted(sample) {
                serde_json::to_writer(&mut lines, sample)?;
                lines.push(b'\n');
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        let (file, size) = match &mut self.file {
            Some(open) => open,
            None => self.file.insert(open(&self.path)?),
        };
        if let Err(error) = file.write_all(&lines) {
            // Half a line must not spoil the next.
            let _ = file.set_len(*size);
            return Err(error);
        }
        *size += lines.len() as u64;
        if *size > self.max_bytes {
            self.file = None;
            self.step = self.step.saturating_mul(2);
            self.thin()?;
        }
        Ok(())
    }

    /// Whether it is a sample's turn.
    fn is_wanted(&mut self, sample: &Sample) -> bool {
        if sample.last {
            self.skipped.remove(&sample.task);
            return true;
        }
        match self.skipped.get_mut(&sample.task) {
            None => self.skipped.insert(sample.task.clone(), 1).is_none(),
            Some(count) if *count >= self.step => {
                *count = 1;
                true
            }
            Some(count) => {
                *count += 1;
                false
            }
        }
    }

    /// Replaces the file by one with half of its samples.
    fn thin(&self) -> io::Result<()> {
        let text = std::fs::read(&self.path)?;
        let mut kept = thinned(&text);
        if kept.len() as u64 > self.max_bytes / 4 * 3 {
            // Many short attempts, each with its last sample: the older half is removed.
            let middle = kept.len() / 2;
            let from = kept[middle..].iter().position(|&byte| byte == b'\n').map_or(0, |at| middle + at + 1);
            kept.drain(..from);
        }
        // The job's loop takes the samples, and does not wait for a disk.
        write_atomic(&self.path, &kept, 0o600, Durability::Rename)
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// Every second line of each task, and the last of each attempt.
fn thinned(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len() / 2);
    let mut odd: BTreeMap<&[u8], bool> = BTreeMap::new();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let odd = odd.entry(task(line)).or_default();
        if !*odd || line.ends_with(b"\"last\":true}\n") {
            kept.extend_from_slice(line);
        }
        *odd = !*odd;
    }
    kept
}

/// The task's name in a line, which begins `{"time":"2026-11-21T13:31:53.250Z","task":"worker-0",`.
fn task(line: &[u8]) -> &[u8] {
    const BEFORE: usize = r#"{"time":"2026-11-21T13:31:53.250Z","task":""#.len();
    line.get(BEFORE..).and_then(|rest| rest.split(|&byte| byte == b'"').next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_container::cgroup::Usage;
    use jobc_place::time::Time;
    use jobc_place::usage::GpuUse;

    fn sample(second: u64, task: &str, last: bool) -> Sample {
        let usage = Usage { cpu_usec: Some(second), ..Usage::default() };
        let time = Time::from_millis(second * 1000);
        Sample {
            time,
            task: TaskId::new(task, 0),
            attempt: 1,
            usage,
            gpu: vec![],
            energy: None,
            from_processes: false,
            last,
        }
    }

    fn seconds(path: &Path, task: &str) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        let samples = text.lines().map(|line| serde_json::from_str::<Sample>(line).unwrap());
        samples.filter(|sample| sample.task.role == task).map(|sample| sample.time.millis() / 1000).collect()
    }

    #[test]
    fn a_line_reads_as_it_was_written() {
        let gpu =
            vec![GpuUse { gpu: "GPU-1".into(), memory: Some(1 << 30), utilization: Some(97), mps: None }];
        let sample = Sample { gpu, ..sample(1, "a", true) };
        let line = serde_json::to_string(&sample).unwrap();
        insta::assert_snapshot!(line, @r#"{"time":"1970-01-01T00:00:01.000Z","task":"a-0","attempt":1,"cpu_usec":1,"gpu":[{"gpu":"GPU-1","memory":1073741824,"utilization":97}],"last":true}"#);
        assert_eq!(serde_json::from_str::<Sample>(&line).unwrap(), sample);
        assert_eq!(task(line.as_bytes()), b"a-0");
    }

    #[test]
    fn what_is_kept_is_spread_over_the_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("samples.jsonl");
        let mut keep = SampleFile { max_bytes: 20_000, ..SampleFile::new(path.clone()) };
        for second in 1..=2000 {
            keep.push(&[sample(second, "a", false), sample(second, "b", second == 7)]).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() <= 20_000);
        }
        let kept = seconds(&path, "a");
        assert!(kept[0] == 1 && kept.is_sorted() && kept.len() > 50, "{kept:?}");
        assert!(kept.windows(2).all(|two| (10..=50).contains(&(two[1] - two[0]))), "{kept:?}");
        assert!(kept.last() > Some(&1950));
        assert!(seconds(&path, "b").contains(&7));
    }

    #[test]
    fn last_samples_alone_do_not_fill_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("samples.jsonl");
        let mut keep = SampleFile { max_bytes: 20_000, ..SampleFile::new(path.clone()) };
        for second in 1..=2000 {
            keep.push(&[sample(second, "a", true)]).unwrap();
        }
        assert!(std::fs::metadata(&path).unwrap().len() <= 20_000);
        assert_eq!(seconds(&path, "a").last(), Some(&2000));
    }
}
