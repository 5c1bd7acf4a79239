//! New output of the tasks of a run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::new_run::Bytes;
use super::question::{Login, Question};
use super::tail;
use crate::slurm::snapshot::{RunFiles, is_log};

/// Bytes of a file at a time.
const MAX_PIECE: u64 = 4 << 20;
/// Bytes of all files at a time, but for one piece.
const MAX_ANSWER: u64 = 12 << 20;

/// Asks for what a run says about itself, and new output of its tasks.
#[derive(Deserialize, Serialize)]
pub(crate) struct NewOutput {
    pub(crate) run: String,
    /// Of files that were not shown before, only so many lines from the end.
    pub(crate) tail: Option<u64>,
    /// How much of each file was shown before.
    pub(crate) shown: BTreeMap<String, u64>,
}

/// New output of a file.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Piece {
    /// Its path in the directory of the run: `logs/train-0.log`, `logs/train-0.2.log`, `out/job.log`.
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) bytes: Bytes,
}

impl Question for NewOutput {
    type Answer = (RunFiles, Vec<Piece>);

    fn answer(self, login: &Login) -> Result<Self::Answer, Fault> {
        let run = login.run(&self.run);
        if !run.is_dir() {
            return Err(Fault::NoRun);
        }
        // How the run is comes first: what a task wrote before its end is there then.
        let files = RunFiles::read(&run, true);
        let (mut pieces, mut total) = (Vec::new(), 0);
        for name in names(&run) {
            if total > MAX_ANSWER {
                break;
            }
            if let Some(piece) = self.piece(&run, name) {
                total += piece.bytes.0.len() as u64;
                pieces.push(piece);
            }
        }
        Ok((files, pieces))
    }
}

impl NewOutput {
    /// What is new in a file.
    fn piece(&self, run: &Path, name: String) -> Option<Piece> {
        let file = File::open(run.join(&name)).ok()?;
        let size = file.metadata().ok()?.len();
        let shown = self.shown.get(&name).copied();
        let offset = shown.map_or_else(|| self.beginning(&name, &file, size), Some)?;
        let bytes = tail::read(&file, offset, size.min(offset + MAX_PIECE)).ok()?;
        (!bytes.is_empty()).then_some(Piece { file: name, offset, bytes: Bytes(bytes) })
    }

    /// Where a file begins that was not shown before.
    fn beginning(&self, name: &str, file: &File, size: u64) -> Option<u64> {
        let lines = |count| tail::last_lines(file, size, count, name.starts_with("records/"));
        self.tail.map_or(Some(0), |count| lines(count).ok())
    }
}

/// The files with output: `logs/*.log`, `out/*.log` and `records/*/logs/*/*.log`.
fn names(run: &Path) -> Vec<String> {
    let below = |directory: &str| {
        let entries = fs::read_dir(run.join(directory)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.into_iter().map(|name| format!("{directory}/{name}")).collect::<Vec<_>>()
    };
    let records = below("records").into_iter().flat_map(|record| below(&format!("{record}/logs")));
    let directories = ["logs".to_owned(), "out".to_owned()].into_iter().chain(records);
    directories.flat_map(|directory| below(&directory)).filter(|name| is_log(name)).collect()
}
