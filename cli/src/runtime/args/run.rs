//! `jobc run`: a job file, a built plan, an OCI bundle or a command, on this host.

use std::ffi::OsString;
use std::path::PathBuf;

use camino::Utf8PathBuf;
use clap::{Args as ClapArgs, ValueEnum};
use jobc_place::job_ref::JobRef;
use jobc_schema::target::GpuShare;

use jobc_gpu::inject::InjectionMethod;

use super::format::one_of;
use super::run_command::CommandArgs;
use crate::args::values::parse_set;
use crate::completion;
use crate::runtime::completion::jobs::{JobFilter, jobs};
use crate::runtime::completion::{roles, tasks_of_file};
use crate::runtime::piped_stdin::has_piped_stdin;
use crate::runtime::settings::allows_unenforced;

#[derive(Debug, ClapArgs)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct RunArgs {
    /// Job file (`-` for stdin), built plan or OCI bundle [default: `job.yaml` in the current directory]
    ///
    /// A directory with a config.json is a bundle, one with a plan.json a built plan, and one with a `job.yaml`,
    /// `job.yml` or `job.json` stands for that job file.
    #[arg(value_name = "PATH", add = completion::job_files())]
    pub what: Option<PathBuf>,

    /// Set a parameter (repeatable)
    ///
    /// Example: `--set epochs=3`. It takes precedence over `--params`.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set, help_heading = JOB_HEADING,
          add = completion::parameters())]
    pub set: Vec<(String, String)>,
    /// Read parameters from a YAML or JSON file (repeatable)
    #[arg(long, value_name = "FILE", help_heading = JOB_HEADING, add = completion::job_files())]
    pub params: Vec<Utf8PathBuf>,
    /// Target whose settings apply [default: the only target with the oci backend, or `local`]
    ///
    /// The target must have the oci backend. If several targets fit, this option is required.
    #[arg(long, value_name = "NAME", help_heading = JOB_HEADING, add = completion::targets())]
    pub target: Option<String>,
    /// Targets file [default: `targets.yaml` next to the job file or in a parent directory]
    #[arg(long, value_name = "FILE", help_heading = JOB_HEADING, add = completion::job_files())]
    pub targets: Option<Utf8PathBuf>,
    /// Accept what the oci backend cannot express exactly, with a warning instead of an error
    #[arg(long, help_heading = JOB_HEADING)]
    pub allow_lossy: bool,
    /// Fail if an image is not in jobc.lock
    #[arg(long, help_heading = JOB_HEADING)]
    pub locked: bool,
    /// Run fewer instances of a role (repeatable)
    ///
    /// Example: `--scale worker=1`.
    #[arg(long, value_name = "ROLE=N", value_parser = parse_scale, help_heading = JOB_HEADING,
          add = roles())]
    pub scale: Vec<(String, u32)>,
    /// Run without GPUs
    #[arg(long, help_heading = JOB_HEADING)]
    pub no_gpu: bool,
    /// GPUs to use, by index or UUID prefix [default: `devices` of the target, or any free GPUs]
    ///
    /// `0` is a GPU, `0:1` a MIG instance, `GPU-3a1b` or `MIG-5c7d` a UUID prefix. `ROLE=` applies the option to one
    /// role; it is then repeatable.
    #[arg(long, value_name = "[ROLE=]GPU,...", conflicts_with = "no_gpu")]
    pub devices: Vec<String>,
    /// How to share GPUs that are not MIG instances [default: chosen from job and host]
    ///
    /// `mps` uses the NVIDIA Multi-Process Service, `hami` the HAMi-core library, and `none` only time slicing.
    #[arg(long, value_name = "mps|hami|none", value_parser = parse_gpu_share, help_heading = JOB_HEADING)]
    pub gpu_share: Option<GpuShare>,
    /// Wait for free resources instead of failing; the jobs of a matrix always wait
    #[arg(long, help_heading = JOB_HEADING)]
    pub queue: bool,
    /// Number of jobs of a matrix to run at once [default: `max_parallel` of the job file, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = JOB_HEADING)]
    pub parallel: Option<u32>,
    /// Run only the combinations of the matrix that have not succeeded in the newest run of the job file
    ///
    /// New combinations run, too. All results belong to the same sweep.
    #[arg(long, help_heading = JOB_HEADING)]
    pub resume: bool,
    /// [preview] Run a job of this host again, and show first what is different from that run
    ///
    /// Without PATH, its job file is compiled again, with `--set` and the other options of this command. Of a sweep, only
    /// the combination of JOB runs again, in the same sweep.
    #[arg(long, value_name = "JOB", conflicts_with_all = ["resume", "watch"], help_heading = JOB_HEADING,
          add = jobs(JobFilter::All))]
    pub retry_of: Option<JobRef>,
    /// Publish a port of a task on the host (repeatable)
    ///
    /// Example: `--publish 8080:server-0:http`, or by the number of the task's port as in `docker run`: `-p 8080:80`.
    /// `PORT` 0 selects a free port; `ADDRESS` defaults to 127.0.0.1.
    #[arg(long, short, value_name = "[ADDRESS:]PORT:TASK:LABEL", help_heading = JOB_HEADING)]
    pub publish: Vec<String>,
    /// Run the job in the background and print its ID, or the ID of the sweep
    #[arg(long, short, help_heading = JOB_HEADING)]
    pub detach: bool,
    /// Restart the job when the job file or a file that it names changes
    ///
    /// A running job is stopped first, as by Ctrl-C. For `python train.py`, all `.py` files in the directory of
    /// train.py and below are watched.
    #[arg(long, conflicts_with_all = ["detach", "terminal", "dry_run", "resume", "save"], help_heading = JOB_HEADING)]
    pub watch: bool,
    /// Pass stdin to the only task, without a terminal; `-t` already forwards stdin
    ///
    /// Without `--image`, a command after `--` also gets a pipe or a file as its stdin without this option.
    #[arg(long, short, conflicts_with = "detach", help_heading = JOB_HEADING)]
    pub interactive: bool,
    /// Attach the terminal to this task [default: the only task]
    ///
    /// `jobc logs` shows the output of the other tasks.
    #[arg(long, short, value_name = "TASK", num_args = 0..=1, default_missing_value = "",
          conflicts_with = "detach", help_heading = JOB_HEADING,
          add = tasks_of_file())]
    pub terminal: Option<String>,
    /// [preview] Ring the bell and show a desktop notification when the job ends, where the terminal or notify-send can
    #[arg(long, conflicts_with = "detach", help_heading = JOB_HEADING)]
    pub notify: bool,
    /// Do not show the table of tasks on a terminal
    #[arg(long, help_heading = JOB_HEADING)]
    pub plain: bool,
    /// Do not print the output of tasks; `jobc logs` shows it
    #[arg(long, help_heading = JOB_HEADING)]
    pub no_logs: bool,
    /// Print only errors
    #[arg(long, short, conflicts_with = "verbose", help_heading = JOB_HEADING)]
    pub quiet: bool,

    /// Root file system to use instead of the image: `host`, a directory or an archive
    ///
    /// `host` is the file system of the host below a writable layer. An archive is a .tar, .tar.gz or .tgz file.
    /// `ROLE=` applies the option to one role; it is then repeatable.
    #[arg(long, value_name = "[ROLE=]host|DIR|TAR")]
    pub root: Vec<String>,
    /// When to pull images from registries [default: missing]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub pull: Option<PullPolicy>,
    /// Image store directory [default: ~/.local/share/jobc/images]
    ///
    /// With this option, a bundle also gets its files from the store: those of `--root`, or of the image that it names.
    #[arg(long, value_name = "DIR", env = IMAGE_ROOT)]
    pub image_root: Option<PathBuf>,
    /// How to add GPUs to containers [default: `gpu_injection` of the target, or auto]
    ///
    /// `cdi` uses the CDI files of the host, `generated` a CDI specification generated from the GPU driver, `hook` the
    /// NVIDIA prestart hook, and `none` nothing. `auto` uses the first of these that works.
    #[arg(long, value_name = "MODE", value_parser = one_of(InjectionMethod::ALL, InjectionMethod::as_str))]
    pub gpu_injection: Option<InjectionMethod>,
    /// Print all steps in order without running them
    #[arg(long)]
    pub dry_run: bool,
    /// Run even if the job file or the settings refuse limits that this host cannot enforce
    ///
    /// It also allows slices of GPUs that are isolated less than the job file requests.
    #[arg(long)]
    pub allow_unenforced: bool,
    /// Keep containers and their bundle copies after the job ends
    #[arg(long)]
    pub keep: bool,
    /// Print the settings and resources chosen on this host
    ///
    /// For a job, this includes the order of its roles.
    #[arg(long)]
    pub verbose: bool,

    /// OCI runtime, by name (such as `crun`) or path [default: built-in]
    #[arg(long, value_name = "RUNTIME", help_heading = BUNDLE_HEADING)]
    pub oci_runtime: Option<OsString>,
    /// Cgroup of the container [default: new]
    #[arg(long, value_enum, value_name = "WHICH", help_heading = BUNDLE_HEADING)]
    pub cgroup: Option<CgroupChoice>,
    /// Directory with the values of secrets, one file per secret, readable only by its owner
    #[arg(long, value_name = "DIR", help_heading = BUNDLE_HEADING)]
    pub secrets: Option<PathBuf>,
    /// Pass the PMIx variables and directories set by `srun --mpi` to the container
    #[arg(long, help_heading = BUNDLE_HEADING)]
    pub mpi: bool,
    /// Container name [default: `run-<PID of jobc>`]
    #[arg(long, value_name = "NAME", help_heading = BUNDLE_HEADING)]
    pub id: Option<String>,

    #[command(flatten)]
    pub command: CommandArgs,
}

/// Which cgroup a container of a bundle gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CgroupChoice {
    #[default]
    /// A cgroup with the limits of the bundle
    New,
    /// The cgroup of the caller with its limits and GPUs, as in a Slurm step; weaker limits are warnings
    Inherited,
}

/// When images are pulled from registries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PullPolicy {
    #[default]
    /// Pull images that are not in the image store
    Missing,
    /// Pull all images, because a tag can point to a new image
    Always,
    /// Never pull; fail if an image is not in the image store
    Never,
}

/// What a job does whose limits this host cannot enforce. Its record lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnenforcedLimits {
    /// It does not start.
    Refused,
    /// It runs, and a message lists them.
    Reported,
    /// It runs; the user has set that no message is needed.
    Accepted,
}

impl RunArgs {
    /// Which images are pulled.
    pub(crate) fn pull_policy(&self) -> PullPolicy {
        self.pull.unwrap_or_default()
    }

    /// Whether the only task reads our standard input directly, not through a terminal: with `-i`, and where a command
    /// gets a pipe or a file. With `--image` it needs `-i`, as in `docker run`.
    pub(crate) fn passes_stdin(&self) -> bool {
        let is_command = !self.command.command.is_empty() && self.command.container.image.is_none();
        let is_asked = self.interactive || is_command && !self.detach && has_piped_stdin();
        is_asked && self.terminal.is_none()
    }

    /// Whether the container stays in the cgroup of this process.
    pub(crate) fn inherits_cgroup(&self) -> bool {
        self.cgroup == Some(CgroupChoice::Inherited)
    }

    /// Whether the user allows unenforced limits, by the command line or the settings, which were read before.
    pub(crate) fn allows_unenforced(&self) -> bool {
        self.allow_unenforced || allows_unenforced().ok().flatten().unwrap_or_default()
    }

    /// What a job does whose limits cannot be enforced; `insists` if its file has `enforce: true`.
    pub(crate) fn unenforced_limits(&self, insists: bool) -> UnenforcedLimits {
        match allows_unenforced().ok().flatten() {
            _ if self.allow_unenforced => UnenforcedLimits::Reported,
            Some(true) if !insists => UnenforcedLimits::Accepted,
            None if !insists => UnenforcedLimits::Reported,
            _ => UnenforcedLimits::Refused,
        }
    }

    /// Whether the command line, and not only the environment, sets the image store.
    pub(crate) fn sets_image_root(&self) -> bool {
        self.image_root.is_some() && self.image_root != std::env::var_os(IMAGE_ROOT).map(PathBuf::from)
    }
}

/// The environment variable with the path of the image store.
const IMAGE_ROOT: &str = "JOBC_IMAGE_ROOT";
const JOB_HEADING: &str = "Job options";
const BUNDLE_HEADING: &str = "Bundle options";

fn parse_gpu_share(text: &str) -> Result<GpuShare, String> {
    match text {
        "mps" => Ok(GpuShare::Mps),
        "hami" => Ok(GpuShare::Hami),
        "none" => Ok(GpuShare::None),
        _ => Err("write `mps`, `hami`, or `none` for the card's own time slices".to_owned()),
    }
}

fn parse_scale(text: &str) -> Result<(String, u32), String> {
    let parts = text.split_once('=').filter(|(role, _)| !role.is_empty());
    let number = parts.and_then(|(role, number)| Some((role, number.parse().ok().filter(|&n| n > 0)?)));
    number
        .map(|(role, number)| (role.to_owned(), number))
        .ok_or_else(|| "write ROLE=N with N from 1; a role that others need cannot be left out".to_owned())
}
