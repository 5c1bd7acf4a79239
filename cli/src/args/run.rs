//! `jobc run`: a job file, a built plan or one bundle, on this machine.

use std::ffi::OsString;
use std::path::PathBuf;

use camino::Utf8PathBuf;
use clap::{Args as ClapArgs, ValueEnum};
use jobc_schema::target::GpuShare;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jobc_gpu::inject::Way;

use super::values::parse_set;

#[derive(Debug, ClapArgs)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct RunArgs {
    /// A job file (`-` for standard input), a folder that holds one, the folder of a built plan, or a bundle: a folder
    /// with a config.json; `job.yaml` of this folder unless given
    pub what: Option<PathBuf>,

    /// Set a parameter; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set, help_heading = JOB)]
    pub set: Vec<(String, String)>,
    /// Take parameters from a YAML or JSON file; may be repeated
    #[arg(long, value_name = "FILE", help_heading = JOB)]
    pub params: Vec<Utf8PathBuf>,
    /// Run it with the settings of this target, which has the oci backend
    #[arg(long, value_name = "NAME", help_heading = JOB)]
    pub target: Option<String>,
    /// The targets file; otherwise `targets.yaml` beside the job file or above it, up to the repository's root
    #[arg(long, value_name = "FILE", help_heading = JOB)]
    pub targets: Option<Utf8PathBuf>,
    /// Go on where something cannot be expressed, and report it as a warning
    #[arg(long, help_heading = JOB)]
    pub allow_lossy: bool,
    /// Refuse an image that is not in jobc.lock
    #[arg(long, help_heading = JOB)]
    pub locked: bool,
    /// Run fewer instances of a role; may be repeated
    #[arg(long, value_name = "ROLE=N", value_parser = parse_scale, help_heading = JOB)]
    pub scale: Vec<(String, u32)>,
    /// Run without GPUs
    #[arg(long, help_heading = JOB)]
    pub no_gpu: bool,
    /// The GPUs to use, and no others, by number (`0`, `0:1` for an instance of a card) or by the beginning of their names
    /// (`GPU-3a1b`, `MIG-…`); of one role with `ROLE=`, and then it may be repeated
    #[arg(long, value_name = "[ROLE=]GPU,…", conflicts_with = "no_gpu")]
    pub devices: Vec<String>,
    /// What serves slices of GPUs that are no MIG instances; what suits the job and the machine unless given
    #[arg(long, value_name = "HOW", value_parser = parse_gpu_share, help_heading = JOB)]
    pub gpu_share: Option<GpuShare>,
    /// Wait for room on the machine in place of failing
    #[arg(long, help_heading = JOB)]
    pub queue: bool,
    /// How many jobs of a matrix run at once; `max_parallel` of the job file, or one, unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = JOB)]
    pub parallel: Option<u32>,
    /// Give a task's port a number on the machine, 0 for any; may be repeated
    #[arg(long, value_name = "[ADDRESS:]PORT:TASK:LABEL", help_heading = JOB)]
    pub publish: Vec<String>,
    /// Leave it running and print its id
    #[arg(long, short, help_heading = JOB)]
    pub detach: bool,
    /// Taken beside `-t`, as in `-it TASK`; what is typed goes to the task either way
    #[arg(long, short, requires = "terminal", help_heading = JOB)]
    pub interactive: bool,
    /// Give this task our terminal; what the others write is in `jobc logs`
    #[arg(long, short, value_name = "TASK", conflicts_with = "detach", help_heading = JOB)]
    pub terminal: Option<String>,
    /// Do not print what the tasks write; `jobc logs` has it
    #[arg(long, help_heading = JOB)]
    pub no_logs: bool,
    /// Print nothing but errors
    #[arg(long, short, conflicts_with = "verbose", help_heading = JOB)]
    pub quiet: bool,

    /// The root file system in place of the image: a folder, an archive (.tar, .tar.gz, .tgz), or `host` for this machine's
    /// own files under a writable layer; of one role with `ROLE=`, and then it may be repeated
    #[arg(long, value_name = "[ROLE=]host|DIR|TAR")]
    pub root: Vec<String>,
    /// Whether images are fetched: those that are not here, unless given; all of them, or none
    #[arg(long, value_enum, value_name = "WHEN", help_heading = JOB)]
    pub pull: Option<Pull>,
    /// Keep images in this folder
    #[arg(long, value_name = "DIR", env = IMAGE_ROOT, help_heading = JOB)]
    pub image_root: Option<PathBuf>,
    /// How GPUs come in: by CDI files of the machine, generated from its driver, or by NVIDIA's hook; `auto`, the first of
    /// these that can, unless the target chooses
    #[arg(long, value_name = "HOW", value_parser = parse_injection())]
    pub gpu_injection: Option<Way>,
    /// Print what would be done, in order, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on where a limit cannot be enforced, and say so
    #[arg(long)]
    pub allow_unenforced: bool,
    /// Keep containers and their copies of the bundles after the end
    #[arg(long)]
    pub keep: bool,
    /// Print what was chosen for this machine; of a job its order and what it takes
    #[arg(long, short)]
    pub verbose: bool,

    /// Run the bundle with another OCI runtime: its name, such as `crun`, or its path
    #[arg(long, value_name = "RUNTIME", help_heading = BUNDLE)]
    pub oci_runtime: Option<OsString>,
    /// The container's name; `run-` and this process's number unless given
    #[arg(long, value_name = "NAME", help_heading = BUNDLE)]
    pub id: Option<String>,
}

/// Whether images are fetched from their registries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pull {
    #[default]
    /// Those that are not in the store
    Missing,
    /// All of them: a tag may stand for another image now
    Always,
    /// None: what is not in the store is an error
    Never,
}

impl RunArgs {
    /// Which images are fetched.
    pub(crate) fn pulls(&self) -> Pull {
        self.pull.unwrap_or_default()
    }

    /// Whether the command line, and not only the environment, says where images are kept.
    pub(crate) fn gives_image_root(&self) -> bool {
        self.image_root.is_some() && self.image_root != std::env::var_os(IMAGE_ROOT).map(PathBuf::from)
    }
}

/// The variable that says where images are kept.
const IMAGE_ROOT: &str = "JOBC_IMAGE_ROOT";
const JOB: &str = "Options for a job";
const BUNDLE: &str = "Options for a bundle";

fn parse_gpu_share(text: &str) -> Result<GpuShare, String> {
    match text {
        "mps" => Ok(GpuShare::Mps),
        "hami" => Ok(GpuShare::Hami),
        "none" => Ok(GpuShare::None),
        _ => Err("write `mps`, `hami`, or `none` for the card's own time slices".to_owned()),
    }
}

fn parse_injection() -> impl TypedValueParser<Value = Way> {
    PossibleValuesParser::new(Way::ALL.map(Way::word)).map(|word| word.parse().unwrap_or_default())
}

fn parse_scale(text: &str) -> Result<(String, u32), String> {
    let parts = text.split_once('=').filter(|(role, _)| !role.is_empty());
    let number = parts.and_then(|(role, number)| Some((role, number.parse().ok().filter(|&n| n > 0)?)));
    number
        .map(|(role, number)| (role.to_owned(), number))
        .ok_or_else(|| "write ROLE=N with N from 1; a role that others need cannot be left out".to_owned())
}
