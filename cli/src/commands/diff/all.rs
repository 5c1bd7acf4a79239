//! All jobs below a directory, compared one by one with those of a revision or of another directory.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use crate::args::values::GOLDEN;
use crate::args::{DiffArgs, FormatArg, JobArgs};
use crate::changes::Comparison;
use crate::input::{InputError, absolute};
use crate::job_files::find;

use super::base::Base;
use super::compile;

/// What changed in all jobs, and the name of what they are compared with; nothing if a job has errors, which are printed.
///
/// # Errors
/// An invalid base.
pub(super) fn changes(
    args: &DiffArgs,
    directory: &Utf8Path,
    format: FormatArg,
) -> Result<Option<(Comparison, String)>, InputError> {
    let base = Base::of_many(args.base.as_deref(), &absolute(directory)?)?;
    let there = match &base {
        Base::Revision(tree) => tree.path(),
        Base::Built(path) | Base::Job(path) => path,
    };
    let mut names = names(directory);
    names.extend(self::names(there));
    let mut changes = Comparison::default();
    for name in names {
        let files = |root: &Utf8Path| {
            let job = root.join(&name);
            // A job that exists only on one side is new or removed.
            if !job.is_file() {
                return Some(vec![]);
            }
            let job = JobArgs { job: Some(job), ..args.job.clone() };
            compile(&job, None, None, format)
        };
        let (Some(new), Some(old)) = (files(directory), files(there)) else { return Ok(None) };
        changes.add(&old, &new);
    }
    Ok(Some((changes, base.name())))
}

/// The job files below a directory, relative to it; none without the directory.
fn names(root: &Utf8Path) -> BTreeSet<Utf8PathBuf> {
    let found = if root.is_dir() { find(&[root.to_owned()], GOLDEN).unwrap_or_default() } else { vec![] };
    found.iter().filter_map(|path| Some(path.strip_prefix(root).ok()?.to_owned())).collect()
}
