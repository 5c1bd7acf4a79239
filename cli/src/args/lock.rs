//! `jobc lock`: the digests of a job's images, written down.

use camino::Utf8PathBuf;
use clap::Args as ClapArgs;

use super::values::parse_set;

#[derive(Debug, ClapArgs)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct LockArgs {
    /// The job file; `job.yaml` of this folder unless given
    pub job: Option<Utf8PathBuf>,
    /// Write nothing and ask nobody; exit with 1 where an image is not in jobc.lock
    #[arg(long, conflicts_with_all = ["update", "update_all"])]
    pub check: bool,
    /// Ask again what this image stands for; may be repeated
    #[arg(long, value_name = "IMAGE")]
    pub update: Vec<String>,
    /// Ask again for every image
    #[arg(long)]
    pub update_all: bool,
    /// Ask no registry: what the names stand for in the store of images here
    #[arg(long)]
    pub local: bool,
    /// Speak plain HTTP with registries
    #[arg(long, conflicts_with = "local")]
    pub plain_http: bool,
    /// The store of images
    #[arg(long, value_name = "DIR", env = "JOBC_IMAGE_ROOT")]
    pub image_root: Option<std::path::PathBuf>,
    /// Set a parameter; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// Take parameters from a YAML or JSON file; may be repeated
    #[arg(long, value_name = "FILE")]
    pub params: Vec<Utf8PathBuf>,
    /// The targets file; otherwise `targets.yaml` beside the job file or above it, up to the repository's root
    #[arg(long, value_name = "FILE")]
    pub targets: Option<Utf8PathBuf>,
}
