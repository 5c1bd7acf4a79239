//! How much code may go with a job, and what is the most of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jobc_compiler::files::CodeError;

use crate::walk::{Entry, MAX_ENTRIES, Tree};

/// Bytes before they are packed.
pub(crate) const MAX_BYTES: u64 = 100 << 20;
/// How many of the largest entries are named.
const NAMED: usize = 3;

/// Refuses too much code. No file was read for it.
pub(crate) fn check(found: &Tree, shown: &str) -> Result<(), CodeError> {
    let total: u64 = found.entries.values().map(size).sum();
    let message = if found.entries.len() > MAX_ENTRIES {
        format!("the code in `{shown}` has more than {MAX_ENTRIES} files")
    } else if total > MAX_BYTES {
        format!("the code in `{shown}` is {}, and at most {} go with a job", amount(total), amount(MAX_BYTES))
    } else {
        return Ok(());
    };
    let entries: Vec<String> =
        largest(found).iter().map(|(name, bytes)| format!("`{name}` ({})", amount(*bytes))).collect();
    let note = format!(
        "name what the job does not need in `.jobcignore`, or put data on a volume under `data`; the largest entries: {}",
        entries.join(", ")
    );
    Err(CodeError { is_size: true, message, note })
}

/// The largest entries: those of the directory in which almost everything is.
pub(crate) fn largest(found: &Tree) -> Vec<(String, u64)> {
    let mut top = PathBuf::new();
    loop {
        let mut sums: BTreeMap<&Path, u64> = BTreeMap::new();
        for (path, entry) in &found.entries {
            let Ok(below) = path.strip_prefix(&top) else { continue };
            if let Some(first) = below.components().next() {
                *sums.entry(Path::new(first.as_os_str())).or_default() += size(entry);
            }
        }
        let total: u64 = sums.values().sum();
        let mut sorted: Vec<(&Path, u64)> = sums.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
        sorted.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        if let Some((first, bytes)) = sorted.first()
            && found.entries.get(&top.join(first)) == Some(&Entry::Directory)
            && bytes * 5 > total * 4
        {
            top.push(first);
            continue;
        }
        sorted.truncate(NAMED);
        return sorted
            .into_iter()
            .map(|(name, bytes)| (top.join(name).display().to_string(), bytes))
            .collect();
    }
}

fn size(entry: &Entry) -> u64 {
    match entry {
        Entry::File(bytes) => *bytes,
        Entry::Directory | Entry::Link(_) => 0,
    }
}

fn amount(bytes: u64) -> String {
    let tenths = (bytes * 10).div_ceil(1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10).replace(".0 ", " ")
}
