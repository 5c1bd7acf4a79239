//! `jobc lock`: records the digests of a job's images and templates.

use camino::Utf8PathBuf;
use clap::Args as ClapArgs;

use crate::args::values::parse_set;
use crate::completion;

#[derive(Debug, ClapArgs)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct LockArgs {
    /// Job file [default: `job.yaml` in the current directory]
    ///
    /// A directory stands for the `job.yaml`, `job.yml` or `job.json` in it.
    #[arg(add = completion::job_files())]
    pub job: Option<Utf8PathBuf>,
    /// Write nothing; exit with status 1 if an image or template is not in jobc.lock
    ///
    /// This requires neither a registry nor a network.
    #[arg(long, conflicts_with_all = ["update", "update_all"])]
    pub check: bool,
    /// Update the digest of this image, or the commit of this template (repeatable)
    #[arg(long, value_name = "NAME")]
    pub update: Vec<String>,
    /// Update all images and templates
    #[arg(long)]
    pub update_all: bool,
    /// Use the digests in the image store instead of registries
    #[arg(long)]
    pub local: bool,
    /// Use HTTP instead of HTTPS for registries
    #[arg(long, conflicts_with = "local")]
    pub plain_http: bool,
    /// Image store directory [default: ~/.local/share/jobc/images]
    #[arg(long, value_name = "DIR", env = "JOBC_IMAGE_ROOT")]
    pub image_root: Option<std::path::PathBuf>,
    /// Set a parameter (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set, add = completion::parameters())]
    pub set: Vec<(String, String)>,
    /// Read parameters from a YAML or JSON file (repeatable)
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub params: Vec<Utf8PathBuf>,
    /// Targets file [default: `targets.yaml` next to the job file or in a parent directory]
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub targets: Option<Utf8PathBuf>,
}
