//! The command line.

mod format;
#[cfg(target_os = "linux")]
pub(crate) mod gpu;
#[cfg(target_os = "linux")]
pub(crate) mod image;
#[cfg(target_os = "linux")]
pub(crate) mod jobs;
#[cfg(target_os = "linux")]
pub(crate) mod lock;
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

pub(crate) use format::FormatArg;
use values::parse_set;

#[cfg(target_os = "linux")]
use {gpu::GpuArgs, image::ImageArgs, jobs::JobCommand, lock::LockArgs, run::RunArgs};

/// Compile one job file into Dockerfiles, OCI bundles, cgroup files, Kubernetes manifests and OpenPAI jobs.
#[derive(Debug, Parser)]
#[command(name = "jobc", version, max_term_width = 100)]
pub(crate) struct Args {
    /// How findings are shown
    #[arg(long, global = true, value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = ColourArg::Auto, env = "JOBC_COLOR", value_name = "WHEN", alias = "color")]
    pub colour: ColourArg,
    #[command(subcommand)]
    pub command: Command,
}

impl Args {
    /// All commands, with `oci`, whose options are those of a crate of its own.
    pub(crate) fn whole() -> clap::Command {
        let own = Self::command();
        #[cfg(target_os = "linux")]
        let own = own.subcommand(jobc_oci::command().name("oci"));
        own
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write everything a job needs to run at its targets
    Build(BuildArgs),
    /// Check a job without writing anything
    Check(CheckArgs),
    /// Run a job, a built plan or one bundle on this machine
    #[cfg(target_os = "linux")]
    Run(RunArgs),
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    Job(JobCommand),
    /// Fetch, show and send images
    #[cfg(target_os = "linux")]
    Image(ImageArgs),
    /// Show the GPUs of this machine and who has them
    #[cfg(target_os = "linux")]
    Gpu(GpuArgs),
    /// Write down the digest that each of a job's images stands for, in jobc.lock
    #[cfg(target_os = "linux")]
    Lock(LockArgs),
    /// Print the plan: what was decided, with every default filled in
    Plan(PlanArgs),
    /// Print a JSON Schema
    Schema {
        /// Which format
        #[arg(value_enum, default_value_t = SchemaArg::Job)]
        name: SchemaArg,
    },
    /// Explain a diagnostic code; without one, list all
    Explain {
        /// The code, such as J0101
        code: Option<String>,
    },
    /// Show what each backend can express
    Backends {
        /// Judge by the settings of this target of `targets.yaml`
        #[arg(long)]
        target: Option<String>,
    },
    /// Rewrite a job of OpenPAI's as a job file
    Import(ImportArgs),
    /// Write a starter job
    Init(InitArgs),
    /// Speak the Language Server Protocol on standard input and output, for editors
    Lsp {
        /// What editors often add; standard input and output are the only way there is
        #[arg(long, hide = true)]
        stdio: bool,
    },
    /// Show what this machine can do for containers, and how to get what is missing
    #[cfg(target_os = "linux")]
    Doctor {
        /// Carry out the steps of one try, in this process
        #[arg(long, hide = true, value_name = "STEPS")]
        probe: Option<String>,
    },
    /// Print a shell's completion script
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page
    Man {
        /// The command whose page to print
        command: Option<String>,
    },
}

/// `jobc run` alone: a start must not wait for the options of every other command to be laid out.
#[cfg(target_os = "linux")]
#[derive(Debug, Parser)]
#[command(
    name = "jobc run",
    bin_name = "jobc run",
    about = "Run a job, a built plan or one bundle on this machine",
    max_term_width = 100
)]
pub(crate) struct OnlyRun {
    /// How findings are shown
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    pub format: FormatArg,
    /// When to use colours
    #[arg(long, value_enum, default_value_t = ColourArg::Auto, env = "JOBC_COLOR", value_name = "WHEN", alias = "color")]
    pub colour: ColourArg,
    #[command(flatten)]
    pub run: RunArgs,
}

/// What `build`, `check` and `plan` read.
#[derive(Debug, ClapArgs)]
pub(crate) struct JobArgs {
    /// The job file, or `-` for standard input; `job.yaml` of this folder unless given
    pub job: Option<Utf8PathBuf>,
    /// Set a parameter; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// Take parameters from a YAML or JSON file; may be repeated
    #[arg(long, value_name = "FILE")]
    pub params: Vec<Utf8PathBuf>,
    /// Build for this target; may be repeated
    #[arg(long, short, value_name = "NAME")]
    pub target: Vec<String>,
    /// Write only this backend; may be repeated
    #[arg(long, short, value_name = "NAME", value_parser = parse_backend)]
    pub backend: Vec<BackendName>,
    /// The targets file; otherwise `targets.yaml` beside the job file or above it, up to the repository's root
    #[arg(long, value_name = "FILE")]
    pub targets: Option<Utf8PathBuf>,
    /// Go on where a backend cannot express something, and report it as a warning
    #[arg(long)]
    pub allow_lossy: bool,
    /// Refuse an image that is not in jobc.lock
    #[arg(long)]
    pub locked: bool,
    /// What of the GPU set-up OCI bundles carry besides the NVIDIA environment
    #[arg(long, value_enum, value_name = "HOW")]
    pub gpu_injection: Option<GpuInjectionArg>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    pub job: JobArgs,
    /// Write to DIR/<target>/ in place of out/<job>/<target>/ beside the job file
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<Utf8PathBuf>,
    /// Write nothing; exit with 1 where the files on disk differ, and show how
    #[arg(long, conflicts_with = "stdout")]
    pub check: bool,
    /// Print the files in place of writing them
    #[arg(long)]
    pub stdout: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub job: JobArgs,
    /// Treat warnings as errors
    #[arg(long)]
    pub deny_warnings: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub job: JobArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// The job: OpenPAI protocol v2 (YAML) or v1 (JSON); `-` for standard input
    pub job: Utf8PathBuf,
    /// The job file to write; standard output unless given
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<Utf8PathBuf>,
    /// Replace the file where it is there
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// The folder to write to
    #[arg(default_value = ".")]
    pub folder: Utf8PathBuf,
    /// The example to start from
    #[arg(long, short, value_name = "NAME", default_value = "hello-cpu")]
    pub example: String,
    /// List the examples
    #[arg(long)]
    pub list: bool,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourArg {
    Auto,
    Always,
    Never,
}

impl ColourArg {
    /// Makes the choice known to everything that prints.
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
    /// NVIDIA's prestart hook
    Hook,
    /// CDI device names as an annotation
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
