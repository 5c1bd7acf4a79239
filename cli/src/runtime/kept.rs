//! Copies of the output of jobs on clusters, below the records of local jobs.
//!
//! The output of a pod is deleted with the pod. So the output that `jobc logs` and `jobc submit --follow` show of a
//! task from its start is kept like the logs of jobs on this host: `STATE/jobc/clusters/TARGET/NAME/logs/TASK`. A
//! stream that starts again repeats lines; they are skipped by their times.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jobc_job::directory::{Directory, JobDirectories};
use jobc_job::logs::{Limits, parse, part_numbers, part_path};
use jobc_place::change::{self, Change};
use jobc_place::job::JobSummary;
use jobc_place::job_ref::Handle;
use jobc_place::logs::Stream;
use jobc_place::time::Time;
use jobc_sys::id::JobId;

/// The directory of all jobs on clusters, next to the records of jobs on this host.
fn root() -> Option<PathBuf> {
    JobDirectories::standard().ok().map(|directories| directories.records.with_file_name("clusters"))
}

/// The kept output of a job.
fn directory(handle: &Handle) -> Option<PathBuf> {
    Some(root()?.join(&handle.target).join(&handle.name))
}

/// Notes that a job was submitted, so that its handle can be completed.
pub(crate) fn note(handle: &Handle) {
    // A home that cannot be written to keeps nothing.
    if let Some(directory) = directory(handle) {
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    }
}

/// The file with the changes of a job's reasons, one in a line.
const CHANGES: &str = "changes.jsonl";

/// The changes of a job's reasons that commands of this user have seen.
pub(crate) fn changes(handle: &Handle) -> Vec<Change> {
    let text = directory(handle).and_then(|directory| std::fs::read_to_string(directory.join(CHANGES)).ok());
    let text = text.unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Keeps the state and the reasons of a job, if they differ from the last ones.
pub(crate) fn note_reasons(handle: &Handle, job: &JobSummary, reasons: &[String]) {
    let change = Change { time: Time::now(), text: change::text(job, reasons) };
    let is_known = changes(handle).last().is_some_and(|last| last.text == change.text);
    let (Some(directory), false, Ok(mut line)) = (directory(handle), is_known, serde_json::to_vec(&change))
    else {
        return;
    };
    line.push(b'\n');
    // A home that cannot be written to keeps nothing.
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(directory.join(CHANGES));
    let _ = file.and_then(|mut file| file.write_all(&line));
}

/// Removes the kept output of a job.
pub(crate) fn forget(handle: &Handle) {
    if let Some(directory) = directory(handle) {
        let _ = std::fs::remove_dir_all(directory);
    }
}

/// The directories with the kept output of the tasks of a job, by task.
pub(crate) fn logs(handle: &Handle) -> Vec<(String, PathBuf)> {
    let Some(directory) = directory(handle) else { return vec![] };
    let entries = std::fs::read_dir(directory.join("logs")).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect();
    found.sort_by(|a, b| order(&a.0).cmp(&order(&b.0)));
    found
}

/// The directory of a job for the last lines of its output, in which reports search: a record as one on this host. Nothing is
/// there without a home.
pub(crate) fn last(handle: &Handle) -> Directory {
    let record = directory(handle).map_or_else(|| PathBuf::from("/dev/null"), |own| own.join("last"));
    Directory { id: JobId { name: handle.name.clone(), run: 1 }, state: record.clone(), record }
}

/// The same with all output that is kept.
pub(crate) fn whole(handle: &Handle) -> Directory {
    let last = last(handle);
    let record = last.record.parent().map_or_else(|| last.record.clone(), Path::to_owned);
    Directory { record, ..last }
}

/// `train-10` comes after `train-9`.
fn order(task: &str) -> (&str, u32) {
    let (role, index) = task.rsplit_once('-').unwrap_or((task, ""));
    (role, index.parse().unwrap_or_default())
}

/// Handles that are known on this host, and their tasks; for completion.
pub(crate) fn handles() -> Vec<Handle> {
    let children = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let Some(root) = root() else { return vec![] };
    let targets = children(&root).into_iter();
    let pairs = targets.flat_map(|target| {
        let names = children(&root.join(&target));
        names.into_iter().map(move |name| Handle { target: target.clone(), name })
    });
    let mut handles: Vec<Handle> = pairs.collect();
    handles.sort_by(|a, b| (&a.target, &a.name).cmp(&(&b.target, &b.name)));
    handles
}

/// The tasks of a job whose output is kept; for completion.
pub(crate) fn tasks(handle: &Handle) -> Vec<String> {
    logs(handle).into_iter().map(|(task, _)| task).collect()
}

/// Keeps the output of one job.
pub(crate) struct KeptOutput {
    directory: PathBuf,
    /// Held while this process writes: only one process does at a time.
    _lock: File,
    tasks: BTreeMap<String, TaskFile>,
    /// Whether writing failed, after which nothing more is kept.
    has_failed: bool,
}

/// The log of one task.
struct TaskFile {
    directory: PathBuf,
    file: Option<BufWriter<File>>,
    number: u64,
    size: u64,
    attempts: BTreeMap<u32, AttemptPosition>,
}

/// How far the output of an attempt is kept.
#[derive(Debug, Default)]
struct AttemptPosition {
    /// The time of the last line.
    time: String,
    /// Lines with that time.
    count: u64,
    /// Lines of that time that came again.
    seen: u64,
    /// Whether incoming lines may already be kept.
    is_behind: bool,
}

impl AttemptPosition {
    /// Whether a line is new; then it becomes the last one. After a new line, all later lines are new, even if a clock
    /// jumped.
    fn is_new(&mut self, time: &str) -> bool {
        let is_same = time == self.time;
        if self.is_behind {
            self.seen += u64::from(is_same);
            if time < self.time.as_str() || is_same && self.seen <= self.count {
                return false;
            }
            self.is_behind = false;
        }
        if is_same {
            self.count += 1;
        } else {
            (self.time, self.count) = (time.to_owned(), 1);
        }
        true
    }
}

impl KeptOutput {
    /// Opens the kept output of a job; `None` if it cannot be written, or another process writes it.
    pub(crate) fn open(handle: &Handle) -> Option<Self> {
        Self::at(directory(handle)?)
    }

    /// Opens the directory of [`last`] for new output, without the output of before.
    pub(crate) fn begin(last: &Path) -> Option<Self> {
        let opened = Self::at(last.to_owned())?;
        let _ = std::fs::remove_dir_all(last.join("logs"));
        Some(opened)
    }

    fn at(directory: PathBuf) -> Option<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).ok()?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(directory.join("lock"));
        let lock = lock.ok()?;
        lock.try_lock().ok()?;
        Some(Self { directory, _lock: lock, tasks: BTreeMap::new(), has_failed: false })
    }

    /// Keeps a line, unless it is kept already.
    pub(crate) fn add(&mut self, task: &str, attempt: u32, time: &str, text: &[u8]) {
        // Without a time, a repeated line cannot be recognized.
        if self.has_failed || time.is_empty() || !is_name(task) {
            return;
        }
        if !self.tasks.contains_key(task) {
            self.tasks.insert(task.to_owned(), TaskFile::open(self.directory.join("logs").join(task)));
        }
        let Some(file) = self.tasks.get_mut(task) else { return };
        let time = micros(time);
        if file.attempts.entry(attempt).or_default().is_new(&time) {
            self.has_failed = file.append(attempt, &time, text).is_err();
        }
    }

    /// Hands everything to the kernel.
    pub(crate) fn flush(&mut self) {
        for file in self.tasks.values_mut() {
            if let Some(file) = &mut file.file {
                self.has_failed |= file.flush().is_err();
            }
        }
    }
}

impl TaskFile {
    /// Reads how far each attempt is kept.
    fn open(directory: PathBuf) -> Self {
        let mut attempts: BTreeMap<u32, AttemptPosition> = BTreeMap::new();
        let numbers = part_numbers(&directory);
        let mut size = 0;
        for number in &numbers {
            let path = part_path(&directory, *number);
            let Ok(file) = File::open(&path) else { continue };
            let (mut reader, mut line) = (BufReader::new(file), Vec::new());
            size = 0;
            while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                let Some(text) = line.strip_suffix(b"\n") else {
                    // A partial line from a process that was killed.
                    let _ = OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(size));
                    break;
                };
                if let Some(line) = parse(text) {
                    attempts.entry(line.attempt).or_default().is_new(line.time);
                }
                size += line.len() as u64;
                line.clear();
            }
        }
        // They come again with the next stream.
        for kept in attempts.values_mut() {
            kept.is_behind = true;
        }
        let number = numbers.last().copied().unwrap_or(0);
        Self { directory, file: None, number, size, attempts }
    }

    fn append(&mut self, attempt: u32, time: &str, text: &[u8]) -> std::io::Result<()> {
        let limits = Limits::default();
        if self.number == 0 || self.size >= limits.part_bytes {
            self.next_part(limits.parts)?;
        }
        let file = if let Some(file) = &mut self.file {
            file
        } else {
            let part = part_path(&self.directory, self.number);
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(part)?;
            self.file.insert(BufWriter::new(file))
        };
        let head = format!("{time} {} F {attempt} ", Stream::Stdout.as_str());
        file.write_all(head.as_bytes())?;
        file.write_all(text)?;
        file.write_all(b"\n")?;
        self.size += (head.len() + text.len() + 1) as u64;
        Ok(())
    }

    /// Begins a part, and removes the oldest if there are too many.
    fn next_part(&mut self, limit: usize) -> std::io::Result<()> {
        if let Some(mut file) = self.file.take() {
            file.flush()?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        (self.number, self.size) = (self.number + 1, 0);
        let numbers = part_numbers(&self.directory);
        for number in numbers.iter().take((numbers.len() + 1).saturating_sub(limit)) {
            let _ = std::fs::remove_file(part_path(&self.directory, *number));
        }
        Ok(())
    }
}

/// The name of a directory; task names from a cluster are not trusted.
fn is_name(task: &str) -> bool {
    !task.is_empty()
        && task.len() <= 128
        && !task.starts_with('.')
        && task.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// A time as logs on this host have it, with 27 bytes: `2026-11-21T13:31:53.250123Z`. Kubernetes writes nanoseconds.
fn micros(time: &str) -> String {
    let second = time.get(..19).unwrap_or("1970-01-01T00:00:00");
    let fraction: String = time
        .get(19..)
        .and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or_default()
        .chars()
        .take_while(char::is_ascii_digit)
        .take(6)
        .collect();
    format!("{second}.{fraction:0<6}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(directory: &Path, streams: &[&[(u32, &str)]]) -> Vec<String> {
        for lines in streams {
            // Each stream is another process.
            let mut file = TaskFile::open(directory.to_owned());
            for (attempt, time) in *lines {
                let time = micros(time);
                if file.attempts.entry(*attempt).or_default().is_new(&time) {
                    file.append(*attempt, &time, b"x").unwrap();
                }
            }
            file.file.unwrap().flush().unwrap();
        }
        let text = std::fs::read_to_string(part_path(directory, 1)).unwrap();
        text.lines().map(|line| format!("{} {}", &line[17..26], &line[37..])).collect()
    }

    #[test]
    fn repeated_lines_are_kept_once() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b, c) = ("2026-01-01T00:00:01.5Z", "2026-01-01T00:00:01.500000900Z", "2026-01-01T00:00:02Z");
        let shown = kept(
            &directory.path().join("main-0"),
            &[
                &[(1, a), (1, b)],
                &[(1, a), (1, b), (1, b), (1, c)],
                &[(1, c), (1, c)],
                &[(2, a), (2, a)],
                &[(2, a), (2, a), (2, c)],
            ],
        );
        assert_eq!(
            shown,
            [
                "01.500000 1 x",
                "01.500000 1 x",
                "01.500000 1 x",
                "02.000000 1 x",
                "02.000000 1 x",
                "01.500000 2 x",
                "01.500000 2 x",
                "02.000000 2 x"
            ]
        );
    }

    #[test]
    fn a_partial_line_of_a_killed_process_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = ("2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z");
        kept(directory.path(), &[&[(1, first)]]);
        let path = part_path(directory.path(), 1);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{}", &text[..20])).unwrap();
        let shown = kept(directory.path(), &[&[(1, first), (1, second)]]);
        assert_eq!(shown, ["01.000000 1 x", "02.000000 1 x"]);
    }

    #[test]
    fn times_have_27_bytes() {
        for (time, expected) in [
            ("2026-01-01T00:00:01.123456789Z", "2026-01-01T00:00:01.123456Z"),
            ("2026-01-01T00:00:01Z", "2026-01-01T00:00:01.000000Z"),
            ("2026-01-01T00:00:01.5Z", "2026-01-01T00:00:01.500000Z"),
        ] {
            assert_eq!(micros(time), expected);
            assert_eq!(micros(time).len(), 27);
        }
    }

    #[test]
    fn names_of_tasks_are_names_of_directories() {
        assert!(is_name("train-0") && is_name("a.b-1"));
        for name in ["", "..", "../x", "a/b", ".x"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
