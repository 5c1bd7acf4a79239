//! The command line of `jobc submit`.

use std::path::PathBuf;

use camino::Utf8PathBuf;
use clap::Args as ClapArgs;

use crate::completion;

#[derive(Clone, Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "one per option")]
pub(crate) struct SubmitArgs {
    /// Job file, or `-` for stdin [default: `job.yaml` in the current directory]
    #[arg(add = completion::job_files())]
    pub job: Option<Utf8PathBuf>,
    /// Target to submit to, or several with commas, `lab,cloud`: the first that has the GPUs of the job free now; `local`
    /// is this host [default: the only reachable cluster]
    #[arg(long, short, value_name = "NAME", add = completion::targets())]
    pub target: Option<String>,
    /// Set a parameter (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::args::values::parse_set, add = completion::parameters())]
    pub set: Vec<(String, String)>,
    /// Read parameters from a YAML or JSON file (repeatable)
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub params: Vec<Utf8PathBuf>,
    /// Targets file [default: `targets.yaml` next to the job file or in a parent directory]
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub targets: Option<Utf8PathBuf>,
    /// Accept what the target cannot express exactly, with a warning instead of an error
    #[arg(long)]
    pub allow_lossy: bool,
    /// Fail if an image is not in jobc.lock
    #[arg(long)]
    pub locked: bool,
    /// Do not build images; they must already be in the registry of the target
    #[arg(long)]
    pub no_build: bool,
    /// Image store directory for images that the job builds [default: ~/.local/share/jobc/images]
    #[arg(long, value_name = "DIR", env = "JOBC_IMAGE_ROOT", add = completion::directories())]
    pub image_root: Option<PathBuf>,
    /// Create another run, even if the same job was submitted before
    #[arg(long)]
    pub new: bool,
    /// Delete your earlier runs of this job first, and wait until they have ended
    #[arg(long, conflicts_with = "new")]
    pub replace: bool,
    /// Also create another run of each job whose newest run failed, timed out or was stopped
    ///
    /// Without it, the same command creates only the jobs of a matrix that are missing.
    #[arg(long, conflicts_with_all = ["new", "replace"])]
    pub resume: bool,
    /// Check the job with the cluster without building, pushing or creating anything
    #[arg(long)]
    pub dry_run: bool,
    /// Follow the output until the job ends, and exit with its exit code; Ctrl-C detaches
    #[arg(long, short, conflicts_with = "dry_run")]
    pub follow: bool,
    /// Do not label the job with the version of jobc and the Git state of the job file
    #[arg(long)]
    pub no_provenance: bool,
    /// Keep the files of the job in `DIR/<name>`
    #[arg(long, short, value_name = "DIR", add = completion::directories())]
    pub output: Option<Utf8PathBuf>,
}
