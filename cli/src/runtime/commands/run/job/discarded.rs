//! The files that a run has written outside its mounts, and how to keep them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jobc_job::directory::Directory;
use jobc_job::discarded::{DirectorySize, Discarded};
use jobc_job::event::{self, Kind};

use crate::runtime::quantity::bytes;
use crate::table::escape_control;

/// How many directories are named.
const MAX_DIRECTORIES: usize = 5;

/// How many directories the advice mounts.
const MAX_MOUNTS: usize = 3;

/// What the user started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A command on the files of the host, with the current directory.
    Command,
    /// A command in an image.
    ImageCommand,
    JobFile,
}

/// Prints what the tasks of jobs have written and lost, if that is worth naming.
pub(super) fn print_note<'a>(jobs: impl Iterator<Item = &'a Directory>, subject: Subject) {
    let events = jobs.flat_map(|job| event::Reader::new(job).read().unwrap_or_default());
    let all = events.filter(|event| event.event == Kind::Discarded);
    let all: Vec<Discarded> = all.filter_map(|event| serde_json::from_value(event.detail).ok()).collect();
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    if let Some(text) = note(&all, subject, home.as_deref(), Path::exists) {
        crate::terminal::eprint(&text);
    }
}

/// The lines about what several tasks have written.
fn note(
    all: &[Discarded],
    subject: Subject,
    home: Option<&Path>,
    exists: impl Fn(&Path) -> bool,
) -> Option<String> {
    let mut sums: BTreeMap<&Path, DirectorySize> = BTreeMap::new();
    for one in all.iter().flat_map(|one| &one.directories) {
        let sum =
            sums.entry(&one.path).or_insert_with(|| DirectorySize { bytes: 0, files: 0, ..one.clone() });
        sum.bytes += one.bytes;
        sum.files += one.files;
    }
    let mut sums: Vec<DirectorySize> = sums.into_values().collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.bytes));
    let at_least = if all.iter().all(|one| one.complete) { "" } else { "at least " };
    let mut text = "jobc: note: files outside the mounted directories were discarded:\n".to_owned();
    for DirectorySize { path, bytes: size, files, .. } in sums.iter().take(MAX_DIRECTORIES) {
        let files = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        text += &format!("jobc:   {}: {at_least}{} in {files}\n", short(path, home), bytes(*size));
    }
    let others = all.iter().map(|one| one.others).sum::<u64>();
    let others = others + u64::try_from(sums.len().saturating_sub(MAX_DIRECTORIES)).unwrap_or_default();
    if others > 0 {
        text += &format!("jobc:   and {others} more\n");
    }
    let mountable = sums.iter().take(MAX_DIRECTORIES).filter(|sum| can_be_mounted(sum));
    let mountable: Vec<&Path> = mountable.take(MAX_MOUNTS).map(|sum| &*sum.path).collect();
    let advice = match &mountable[..] {
        [] if sums.is_empty() => return None,
        [] => keep_elsewhere(subject).to_owned(),
        paths => how_to_mount(paths, subject, home, exists),
    };
    Some(format!("{text}jobc: {advice}\n"))
}

/// Whether a mount keeps the files of a directory: of the system's own, what a run installs is not wanted on the host.
fn can_be_mounted(sum: &DirectorySize) -> bool {
    const SYSTEM: [&str; 7] = ["/bin", "/boot", "/lib", "/lib64", "/sbin", "/usr", "/var"];
    let path = sum.path.to_str().unwrap_or_default();
    // No quotes are needed for it, in a shell as in YAML.
    let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@".contains(c));
    !sum.is_file && is_plain && !SYSTEM.iter().any(|system| sum.path.starts_with(system))
}

/// Where to write files whose own directory cannot be mounted.
fn keep_elsewhere(subject: Subject) -> &'static str {
    match subject {
        Subject::Command => "to keep such files, write them to the directory in which the run starts",
        Subject::ImageCommand => {
            "to keep such files, run `mkdir -p kept`, add `-v ./kept:/kept` before `--`, and write them to /kept"
        }
        Subject::JobFile => {
            "to keep such files, write them to an output of the job file, as to /kept with `outputs: {kept: {source: ./kept, mount: /kept}}`"
        }
    }
}

/// How to keep the files of directories by mounting them.
fn how_to_mount(
    paths: &[&Path],
    subject: Subject,
    home: Option<&Path>,
    exists: impl Fn(&Path) -> bool,
) -> String {
    let names: Vec<String> = paths.iter().map(|path| short(path, home)).collect();
    let names = match &names[..] {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    };
    let missing: String =
        paths.iter().filter(|path| !exists(path)).map(|path| format!(" {}", path.display())).collect();
    let first = if missing.is_empty() { missing } else { format!("run `mkdir -p{missing}` and ") };
    match subject {
        Subject::Command | Subject::ImageCommand => {
            let options: Vec<String> =
                paths.iter().map(|path| format!("-v {0}:{0}", path.display())).collect();
            format!("to keep {names}, {first}add `{}` before `--`", options.join(" "))
        }
        Subject::JobFile => {
            let volume = |(number, path): (u32, &&Path)| {
                let (number, path) =
                    (if number == 1 { String::new() } else { number.to_string() }, path.display());
                format!("kept{number}: {{source: {path}, mount: {path}, writable: true}}")
            };
            let volumes: Vec<String> = (1..).zip(paths).map(volume).collect();
            let object = if volumes.len() == 1 { "it" } else { "them" };
            format!(
                "to keep {names}, {first}mount {object} in the job file: `data: {{{}}}`",
                volumes.join(", ")
            )
        }
    }
}

/// A path with `~` for the home directory.
fn short(path: &Path, home: Option<&Path>) -> String {
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    let path = below.map_or_else(|| path.to_owned(), |below| PathBuf::from("~").join(below));
    escape_control(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn check(sizes: &[(&str, u64, u64)], subject: Subject, complete: bool) -> String {
        let directories = sizes.iter().map(|&(path, bytes, files)| DirectorySize {
            path: path.into(),
            bytes,
            files,
            is_file: path.contains(".json"),
        });
        let all = [
            Discarded { directories: directories.collect(), others: 0, complete },
            Discarded { complete: true, ..Discarded::default() },
        ];
        let exists = |path: &Path| path.ends_with("huggingface");
        note(&all, subject, Some(Path::new("/home/ann")), exists).unwrap_or_default()
    }

    const CACHE: (&str, u64, u64) = ("/home/ann/.cache/huggingface", 1_288_490_189, 31);

    #[test]
    fn the_largest_directories_come_first_and_can_be_kept() {
        assert_snapshot!(check(&[("/opt/tool", 10, 1), CACHE], Subject::Command, true), @"
        jobc: note: files outside the mounted directories were discarded:
        jobc:   ~/.cache/huggingface: 1.2 GiB in 31 files
        jobc:   /opt/tool: 10 B in 1 file
        jobc: to keep ~/.cache/huggingface and /opt/tool, run `mkdir -p /opt/tool` and add `-v /home/ann/.cache/huggingface:/home/ann/.cache/huggingface -v /opt/tool:/opt/tool` before `--`
        ");
        assert_snapshot!(check(&[CACHE, ("/usr/lib", 30, 1), ("/opt/a", 20, 1)], Subject::JobFile, true), @"
        jobc: note: files outside the mounted directories were discarded:
        jobc:   ~/.cache/huggingface: 1.2 GiB in 31 files
        jobc:   /usr/lib: 30 B in 1 file
        jobc:   /opt/a: 20 B in 1 file
        jobc: to keep ~/.cache/huggingface and /opt/a, run `mkdir -p /opt/a` and mount them in the job file: `data: {kept: {source: /home/ann/.cache/huggingface, mount: /home/ann/.cache/huggingface, writable: true}, kept2: {source: /opt/a, mount: /opt/a, writable: true}}`
        ");
        assert_snapshot!(check(&[CACHE], Subject::Command, true), @"
        jobc: note: files outside the mounted directories were discarded:
        jobc:   ~/.cache/huggingface: 1.2 GiB in 31 files
        jobc: to keep ~/.cache/huggingface, add `-v /home/ann/.cache/huggingface:/home/ann/.cache/huggingface` before `--`
        ");
        assert_snapshot!(check(&[CACHE], Subject::JobFile, false), @"
        jobc: note: files outside the mounted directories were discarded:
        jobc:   ~/.cache/huggingface: at least 1.2 GiB in 31 files
        jobc: to keep ~/.cache/huggingface, mount it in the job file: `data: {kept: {source: /home/ann/.cache/huggingface, mount: /home/ann/.cache/huggingface, writable: true}}`
        ");
        let many: Vec<(String, u64)> = (0..7).map(|n| (format!("/home/ann/run-{n}"), 900 - n)).collect();
        let many: Vec<(&str, u64, u64)> =
            many.iter().map(|(path, bytes)| (path.as_str(), *bytes, 2)).collect();
        assert_snapshot!(check(&many, Subject::Command, true), @"
        jobc: note: files outside the mounted directories were discarded:
        jobc:   ~/run-0: 900 B in 2 files
        jobc:   ~/run-1: 899 B in 2 files
        jobc:   ~/run-2: 898 B in 2 files
        jobc:   ~/run-3: 897 B in 2 files
        jobc:   ~/run-4: 896 B in 2 files
        jobc:   and 2 more
        jobc: to keep ~/run-0, ~/run-1 and ~/run-2, run `mkdir -p /home/ann/run-0 /home/ann/run-1 /home/ann/run-2` and add `-v /home/ann/run-0:/home/ann/run-0 -v /home/ann/run-1:/home/ann/run-1 -v /home/ann/run-2:/home/ann/run-2` before `--`
        ");
    }

    #[test]
    fn files_that_cannot_be_mounted_are_to_be_written_elsewhere() {
        let places = [
            (Subject::Command, "write them to the directory in which the run starts\n"),
            (Subject::ImageCommand, "add `-v ./kept:/kept` before `--`, and write them to /kept\n"),
            (Subject::JobFile, "as to /kept with `outputs: {kept: {source: ./kept, mount: /kept}}`\n"),
        ];
        for (path, (subject, place)) in ["/home/ann/result.json", "/home/ann/a b/c", "/usr/lib"]
            .into_iter()
            .flat_map(|path| places.map(|place| (path, place)))
        {
            let text = check(&[(path, 10, 1)], subject, true);
            assert!(text.ends_with(place), "{path}: {text}");
        }
        let mixed = check(&[("/usr/lib", 10_000, 1), CACHE], Subject::Command, true);
        assert!(mixed.contains("add `-v /home/ann/.cache/huggingface:"), "{mixed}");
        assert_eq!(check(&[], Subject::Command, true), "");
    }
}
