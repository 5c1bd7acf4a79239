//! A directory of built files: all of `out`, of one job, or of one target.

use camino::Utf8Path;

use crate::args::JobArgs;
use crate::changes::target_files::{BuiltTarget, TargetFiles};
use crate::input::{InputError, shorten};

/// The targets that were built into a directory.
pub(super) struct BuiltDirectory<'a> {
    root: &'a Utf8Path,
    targets: Vec<BuiltTarget>,
}

impl<'a> BuiltDirectory<'a> {
    /// # Errors
    /// A directory that `jobc build` has not written.
    pub(super) fn find(root: &'a Utf8Path) -> Result<Self, InputError> {
        let targets = BuiltTarget::below(root);
        if targets.is_empty() {
            return Err(InputError(format!(
                "`{}` has neither a job file nor files that `jobc build` has written; name a directory that has, \
                 another job file or a Git revision",
                shorten(root)
            )));
        }
        Ok(Self { root, targets })
    }

    /// The arguments for a job whose files are here: of the only target, if the directory is that of a target.
    pub(super) fn arguments(&self, args: &JobArgs) -> JobArgs {
        let mut args = args.clone();
        if let [only] = &self.targets[..]
            && only.directory == self.root
            && args.target.is_empty()
        {
            args.target.push(only.target.clone());
        }
        args
    }

    /// A directory of the job's files; all its targets are equally deep.
    pub(super) fn of_job(&self, job: &str) -> &Utf8Path {
        let of_job = self.targets.iter().find(|built| built.job == job);
        &of_job.unwrap_or(&self.targets[0]).directory
    }

    /// The files that were built of the same jobs and targets.
    ///
    /// # Errors
    /// None was built here, or files cannot be read.
    pub(super) fn read(&self, compiled: &[TargetFiles]) -> Result<Vec<TargetFiles>, InputError> {
        let places: Vec<_> = compiled.iter().map(|files| self.place(&files.job, &files.target)).collect();
        if let [wanted, ..] = compiled
            && places.iter().all(Option::is_none)
        {
            let (built, others) = (&self.targets[0], self.targets.len() - 1);
            let others = if others == 0 { String::new() } else { format!(" and {others} more") };
            return Err(InputError(format!(
                "`{}` has no files of the job `{}` for the target `{}`, but of `{}` for `{}`{others}; name the job file \
                 with `--job`, or the target with `--target`",
                shorten(self.root),
                wanted.job,
                wanted.target,
                built.job,
                built.target,
            )));
        }
        compiled.iter().zip(places).map(|(files, place)| files.read(place)).collect()
    }

    /// The directory of a job's target. A renamed job is known by the target, unless the directory has one for each job.
    fn place(&self, job: &str, target: &str) -> Option<&Utf8Path> {
        let without_job = [self.root.to_owned(), self.root.join(target)];
        let of_target = || self.targets.iter().filter(|built| built.target == target);
        let found = of_target().find(|built| built.job == job);
        let found = found.or_else(|| of_target().find(|built| without_job.contains(&built.directory)));
        found.map(|built| built.directory.as_path())
    }
}
