//! Compares two sets of built files by their values, and prints the differences.

pub(crate) mod compare;
mod fields;
pub(crate) mod print;
pub(crate) mod summary;
pub(crate) mod target_files;

use std::collections::BTreeSet;

use jobc_compiler::import::request_of_script;

use compare::FileChange;
use summary::FieldChanges;
use target_files::TargetFiles;

/// What changed in jobs and in their files.
#[derive(Default)]
pub(crate) struct Comparison {
    pub fields: FieldChanges,
    pub files: Vec<FileChange>,
    /// Options of Slurm that a script has, and those that jobc writes for a target.
    pub options: Vec<OptionChange>,
}

/// An option of Slurm that differs.
pub(crate) struct OptionChange {
    pub target: String,
    pub option: String,
    pub old: Option<String>,
    pub new: Option<String>,
}

impl Comparison {
    pub(crate) fn of(then: &[TargetFiles], now: &[TargetFiles]) -> Self {
        let mut comparison = Self::default();
        comparison.add(then, now);
        comparison
    }

    /// Compares what a batch script asks Slurm for with what the scripts of jobc do.
    pub(crate) fn compare_options(&mut self, script: &str, now: &[TargetFiles]) {
        let asked = request_of_script(script);
        for files in now {
            let scripts = files.artifacts.iter().filter(|file| file.path.extension() == Some("sbatch"));
            for built in scripts.take(1) {
                let built = request_of_script(&String::from_utf8_lossy(&built.bytes));
                let names: BTreeSet<&String> = asked.keys().chain(built.keys()).collect();
                for name in names.into_iter().filter(|name| asked.get(*name) != built.get(*name)) {
                    self.options.push(OptionChange {
                        target: files.target.clone(),
                        option: name.clone(),
                        old: asked.get(name).cloned(),
                        new: built.get(name).cloned(),
                    });
                }
            }
        }
    }

    /// Adds the jobs of another job file.
    pub(crate) fn add(&mut self, then: &[TargetFiles], now: &[TargetFiles]) {
        self.fields.add(then, now);
        self.files.extend(compare::changes(then, now));
    }
}
