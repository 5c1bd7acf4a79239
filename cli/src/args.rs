//! The command line. Doc comments of commands and options are their help texts: what it does, then `[default: ...]`.
#![allow(rustdoc::broken_intra_doc_links)] // `[default: ...]` is not a link

#[cfg(target_os = "linux")]
pub(crate) mod build_access;
mod format;
#[cfg(target_os = "linux")]
pub(crate) mod gpu;
#[cfg(target_os = "linux")]
pub(crate) mod image;
#[cfg(target_os = "linux")]
pub(crate) mod image_build;
#[cfg(target_os = "linux")]
pub(crate) mod image_tools;
#[cfg(target_os = "linux")]
pub(crate) mod jobs;
#[cfg(target_os = "linux")]
pub(crate) mod lock;
mod overview;
#[cfg(target_os = "linux")]
pub(crate) mod run;
mod values;
#[cfg(target_os = "linux")]
pub(crate) mod watch;

use camino::Utf8PathBuf;
use clap::{Args as ClapArgs, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use jobc_schema::BackendName;
use jobc_schema::target::GpuInjection;

use crate::completion;
pub(crate) use format::FormatArg;
use values::{GLOBAL_OPTION_ORDER, parse_set};

#[cfg(target_os = "linux")]
use {gpu::GpuArgs, image::ImageArgs, jobs::JobCommand, lock::LockArgs, run::RunArgs};

/// Compile a job file into Dockerfiles, OCI bundles, cgroup files, Kubernetes manifests and OpenPAI jobs, or run it on
/// this host.
#[derive(Debug, Parser)]
#[command(
    name = "jobc",
    version,
    max_term_width = 100,
    after_help = "Run `jobc COMMAND --help` for the options of a command."
)]
pub(crate) struct Args {
    /// Output format of findings
    #[arg(long, global = true, value_enum, default_value_t = FormatArg::Text, display_order = GLOBAL_OPTION_ORDER)]
    pub format: FormatArg,
    /// When to use colors
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = ColorArg::Auto,
        env = "JOBC_COLOR",
        value_name = "WHEN",
        alias = "colour",
        display_order = GLOBAL_OPTION_ORDER
    )]
    pub color: ColorArg,
    #[command(subcommand)]
    pub command: Command,
}

/// The description of `jobc run`, which [`Command`] and [`RunCommand`] share.
#[cfg(target_os = "linux")]
const ABOUT_RUN: &str = "Run a job file, a built plan or an OCI bundle on this host";

impl Args {
    /// All commands, with `oci`, whose options are defined in a separate crate.
    pub(crate) fn full_command() -> clap::Command {
        let own = Self::command();
        #[cfg(target_os = "linux")]
        let own = own.subcommand(jobc_oci::command().name("oci"));
        let template = overview::template(&own);
        own.help_template(template)
    }
}

/// The commands; `overview` has their order in `jobc --help`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile a job file into the files of each target
    Build(BuildArgs),
    /// Check job files without writing anything
    Check(CheckArgs),
    #[cfg(target_os = "linux")]
    #[command(about = ABOUT_RUN)]
    Run(RunArgs),
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    Job(JobCommand),
    /// Manage images: pull, build, import, save, push
    #[cfg(target_os = "linux")]
    Image(ImageArgs),
    /// List GPUs and GPU leases, and write CDI files
    #[cfg(target_os = "linux")]
    Gpu(GpuArgs),
    /// Record the digests of a job's images in jobc.lock
    #[cfg(target_os = "linux")]
    Lock(LockArgs),
    /// Print a summary of the resolved plan, or all of it
    ///
    /// `--format json` prints the content of plan.json, `--format yaml` the same as YAML.
    Plan(PlanArgs),
    /// Print a JSON Schema
    Schema {
        /// Schema to print
        #[arg(value_enum, default_value_t = SchemaArg::Job)]
        name: SchemaArg,
    },
    /// Explain a diagnostic code or a field, or list all codes
    ///
    /// A field is its path in a job file or a targets file: `roles.train.retry`, `resources.memory`, `backends`. Names
    /// that the file chooses can be any word, or left out. `--format json` prints pages as JSON; without a topic, all
    /// codes and fields.
    Explain {
        /// Diagnostic code, such as `J0101`, or a field, such as `roles.train.retry` [default: list all codes]
        #[arg(add = completion::topics())]
        topic: Option<String>,
    },
    /// Show which fields each backend supports
    ///
    /// `--format json` adds the reasons.
    Backends {
        /// Use the settings of this target of `targets.yaml` [default: the built-in targets]
        #[arg(long, value_name = "NAME", add = completion::targets())]
        target: Option<String>,
    },
    /// Convert an OpenPAI job to a job file
    Import(ImportArgs),
    /// Create a starter job from an example
    Init(InitArgs),
    /// Start the language server for editors
    ///
    /// The server speaks the Language Server Protocol (LSP) on stdin and stdout.
    Lsp {
        /// Accepted for compatibility; the server always uses stdin and stdout
        #[arg(long, hide = true)]
        stdio: bool,
    },
    /// Check whether this host can run containers, and suggest fixes
    ///
    /// The checks change nothing on the host. The exit status is 0 if the user can run containers, and 1 if not.
    #[cfg(target_os = "linux")]
    Doctor {
        /// Run the steps of one probe in this process
        #[arg(long, hide = true, value_name = "STEPS")]
        probe: Option<String>,
    },
    /// Print a shell completion script
    Completions {
        /// Shell that reads the script
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print a manual page
    Man {
        /// Command to describe [default: jobc itself]
        #[arg(conflicts_with = "all")]
        command: Option<String>,
        /// Write the pages of all commands to this directory
        #[arg(long, value_name = "DIR", add = completion::directories())]
        all: Option<Utf8PathBuf>,
    },
}

/// `jobc run` alone: it must start without building the options of all other commands.
#[cfg(target_os = "linux")]
#[derive(Debug, Parser)]
#[command(name = "jobc run", bin_name = "jobc run", about = ABOUT_RUN, max_term_width = 100)]
pub(crate) struct RunCommand {
    /// Output format of findings
    #[arg(long, value_enum, default_value_t = FormatArg::Text, display_order = GLOBAL_OPTION_ORDER)]
    pub format: FormatArg,
    /// When to use colors
    #[arg(
        long,
        value_enum,
        default_value_t = ColorArg::Auto,
        env = "JOBC_COLOR",
        value_name = "WHEN",
        alias = "colour",
        display_order = GLOBAL_OPTION_ORDER
    )]
    pub color: ColorArg,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Arguments of `build`, `check` and `plan`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct JobArgs {
    /// Job file, or `-` for stdin [default: `job.yaml` in the current directory]
    ///
    /// A directory stands for the `job.yaml`, `job.yml` or `job.json` in it.
    #[arg(add = completion::job_files())]
    pub job: Option<Utf8PathBuf>,
    /// Set a parameter (repeatable)
    ///
    /// Example: `--set epochs=3`. It takes precedence over `--params`.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set, add = completion::parameters())]
    pub set: Vec<(String, String)>,
    /// Read parameters from a YAML or JSON file (repeatable)
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub params: Vec<Utf8PathBuf>,
    /// Target to build for (repeatable) [default: `default` of the targets file, or all targets]
    ///
    /// Without a targets file there are three built-in targets: `local`, `kubernetes` and `openpai`.
    #[arg(long, short, value_name = "NAME", add = completion::targets())]
    pub target: Vec<String>,
    /// Backend to use (repeatable) [default: all backends of the target]
    ///
    /// The backends are `dockerfile`, `oci`, `cgroup`, `kubernetes` and `openpai`.
    #[arg(long, short, value_name = "NAME", value_parser = parse_backend, add = completion::backends())]
    pub backend: Vec<BackendName>,
    /// Targets file [default: `targets.yaml` next to the job file or in a parent directory up to the repository root]
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub targets: Option<Utf8PathBuf>,
    /// Leave out what a backend cannot express, with a warning instead of an error
    #[arg(long)]
    pub allow_lossy: bool,
    /// Fail if an image is not in jobc.lock
    #[arg(long)]
    pub locked: bool,
    /// GPU setup in OCI bundles besides the NVIDIA environment variables [default: from the target, or none]
    #[arg(long, value_enum, value_name = "MODE")]
    pub gpu_injection: Option<GpuInjectionArg>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    pub job: JobArgs,
    /// Write to `DIR/<target>/` [default: `out/<job>/<target>/` next to the job file]
    ///
    /// The jobs of a matrix go to `DIR/<job>/<target>/`.
    #[arg(long, short, value_name = "DIR", add = completion::directories())]
    pub output: Option<Utf8PathBuf>,
    /// Write nothing; print a diff and exit with status 1 if the files on disk differ
    #[arg(long, conflicts_with = "stdout")]
    pub check: bool,
    /// Print the files instead of writing them
    #[arg(long)]
    pub stdout: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub job: JobArgs,
    /// More job files
    ///
    /// A directory without a job file of its own stands for all job files below it.
    #[arg(value_name = "JOB", add = completion::job_files())]
    pub more: Vec<Utf8PathBuf>,
    /// Exit with status 1 if there are warnings
    #[arg(long)]
    pub deny_warnings: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub job: JobArgs,
    /// Output format of the plan; `short`, `sarif` and `github` are formats of the findings
    #[arg(long, value_parser = format::of_plan(), default_value = "text")]
    pub format: FormatArg,
    /// Print the `docker run` command of the first instance of each role instead
    #[arg(long)]
    pub docker: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// OpenPAI job in protocol v2 (YAML) or v1 (JSON), or `-` for stdin
    #[arg(add = completion::job_files())]
    pub job: Utf8PathBuf,
    /// Job file to write [default: stdout]
    #[arg(long, short, value_name = "FILE", add = completion::files())]
    pub output: Option<Utf8PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Directory to write to
    #[arg(value_name = "DIR", default_value = ".", add = completion::directories())]
    pub directory: Utf8PathBuf,
    /// Example to start from
    #[arg(long, short, value_name = "NAME", default_value = "hello-cpu")]
    pub example: String,
    /// List the examples
    #[arg(long)]
    pub list: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    Auto,
    Always,
    Never,
}

impl ColorArg {
    /// Sets the choice for everything that prints.
    pub(crate) fn write_global(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaArg {
    Job,
    Targets,
    Plan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GpuInjectionArg {
    /// NVIDIA prestart hook
    Hook,
    /// CDI device names in an annotation
    Cdi,
    /// Nothing
    None,
}

impl From<GpuInjectionArg> for GpuInjection {
    fn from(how: GpuInjectionArg) -> Self {
        match how {
            GpuInjectionArg::Hook => Self::Hook,
            GpuInjectionArg::Cdi => Self::Cdi,
            GpuInjectionArg::None => Self::None,
        }
    }
}

fn parse_backend(text: &str) -> Result<BackendName, String> {
    BackendName::ALL.into_iter().find(|name| name.as_str() == text).ok_or_else(|| {
        let known: Vec<&str> = BackendName::ALL.iter().map(|name| name.as_str()).collect();
        format!("known backends: {}", known.join(", "))
    })
}
