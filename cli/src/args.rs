//! Options of commands. Their doc comments are their help texts: what it does, then `[default: ...]`.
#![allow(rustdoc::broken_intra_doc_links)] // `[default: ...]` is not a link

pub(crate) mod config;
mod format;
pub(crate) mod standard_library;
pub(crate) mod values;

use camino::Utf8PathBuf;
use clap::{Args as ClapArgs, ValueEnum};
use jobc_schema::BackendName;
use jobc_schema::target::BackendNameError;
use jobc_schema::target::GpuInjection;

use crate::completion;
pub(crate) use format::FormatArg;
use values::parse_set;

/// Arguments of `build`, `check` and `plan`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct JobArgs {
    /// Job file, or `-` for stdin [default: `job.yaml` in the current directory]
    ///
    /// A directory stands for the `job.yaml`, `job.yml` or `job.json` in it.
    #[arg(add = completion::job_files())]
    pub job: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Set a parameter (repeatable)
    ///
    /// Example: `--set epochs=3`. It takes precedence over `--params`.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set, add = completion::parameters())]
    pub set: Vec<(String, String)>,
    /// Read parameters from a YAML or JSON file (repeatable)
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub params: Vec<Utf8PathBuf>,
    /// Target to build for (repeatable) [default: `default` of the targets file, or all in it]
    ///
    /// Without a targets file there are three built-in targets: `local`, which is the default, `kubernetes` and
    /// `openpai`.
    #[arg(long, short, value_name = "NAME", add = completion::targets())]
    pub target: Vec<String>,
    /// Backend to use (repeatable) [default: all backends of the target]
    ///
    /// The backends are `dockerfile`, `oci`, `cgroup`, `kubernetes`, `openpai` and `slurm`. Others are plug-ins.
    #[arg(long, short, value_name = "NAME", value_parser = parse_backend, add = completion::backends())]
    pub backend: Vec<BackendName>,
    /// Targets file [default: `targets.yaml` next to the job file or in a parent directory]
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub targets: Option<Utf8PathBuf>,
    /// Accept what a backend cannot express exactly, with a warning instead of an error
    #[arg(long)]
    pub allow_lossy: bool,
    /// Fail if an image is not in jobc.lock
    #[arg(long)]
    pub locked: bool,
    /// GPU setup in OCI bundles besides the NVIDIA environment variables [default: from the target, or none]
    #[arg(long, value_enum, value_name = "MODE")]
    pub gpu_injection: Option<GpuInjectionArg>,
}

/// Which job of a file of another tool is read.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct SelectionArgs {
    /// Job to read, from a file with several objects of Kubernetes that run pods
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Compose file that changes those before it (repeatable); no override file is read then
    #[arg(long, short, value_name = "FILE", add = completion::files())]
    pub file: Vec<Utf8PathBuf>,
    /// Profile of a Compose file whose services are in the job (repeatable)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub profile: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "one per option")]
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
    /// Print the files with the reason for each line instead of writing them
    ///
    /// A reason is a field of the job file, a setting of the target, or a default. `jobc why FILE:LINE` has the reasons for
    /// a line of a written file.
    #[arg(long, conflicts_with_all = ["check", "stdout", "watch", "sbom", "provenance"])]
    pub explain: bool,
    /// Label the files with the digest of the plan, the version of jobc and the Git state of the job
    ///
    /// Such files change with every commit. `jobc diff` and `jobc test` ignore these labels.
    #[arg(long)]
    pub provenance: bool,
    /// Also write software bills of materials (SBOMs) of the images in the image store to `DIR/<job>/<target>/`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["stdout", "check"], add = completion::directories())]
    pub sbom: Option<Utf8PathBuf>,
    /// Rebuild when an input file changes
    #[arg(long, conflicts_with_all = ["check", "stdout"])]
    pub watch: bool,
}

#[derive(Debug, ClapArgs)]
#[command(mut_arg("job", |arg| {
    arg.long("job")
        .short('j')
        .value_name("FILE")
        .help("Job file [default: `job.yaml` in the current directory]")
        .long_help("Job file [default: `job.yaml` in the current directory].\n\nA directory stands for the `job.yaml`, `job.yml` or `job.json` in it, or for all job files below it: those are compared one by one, and jobs on one side only are new or gone.")
}))]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub job: JobArgs,
    /// Git revision, directory of built files, or job file to compare with [default: HEAD]
    ///
    /// A directory with a job file stands for that file. Files and directories take precedence over revisions.
    #[arg(value_name = "BASE")]
    pub base: Option<String>,
    /// Job file, directory of built files, or Git revision that is compared with BASE [default: the job file]
    ///
    /// Of a revision, the job file of `--job` is read.
    #[arg(value_name = "NEW")]
    pub new: Option<String>,
    /// Also print what changed in the built files
    #[arg(long)]
    pub artifacts: bool,
    /// Print Markdown, for a pull request comment
    #[arg(long)]
    pub markdown: bool,
}

#[derive(Debug, ClapArgs)]
#[command(mut_arg("job", |arg| {
    arg.required(true)
        .value_name("FILE:LINE")
        .help("Line of a written file, of a job file, or of its `targets.yaml`")
        .long_help("Line of a file that `jobc build` has written, of a job file, or of its `targets.yaml`.\n\nThe name or ID of a job of this host shows why it ended, or what its roles wait for.\n\nA column after the line is ignored: `job.yaml:12:5`.")
}))]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub job: JobArgs,
    /// Output directory of the job, for the paths printed for a job file [default: `out/<job>/<target>/`]
    #[arg(long, short, value_name = "DIR", add = completion::directories())]
    pub output: Option<Utf8PathBuf>,
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
    /// Check again when an input file changes
    #[arg(long, conflicts_with_all = ["fix", "unsafe_fixes"])]
    pub watch: bool,
    #[command(flatten)]
    pub fixes: FixArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FixArgs {
    /// Apply safe fixes to the files, and print the remaining findings
    #[arg(long)]
    pub fix: bool,
    /// Also apply fixes that are guesses; implies `--fix`
    #[arg(long)]
    pub unsafe_fixes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FmtArgs {
    /// Files, or directories that stand for all job files and targets files below them; `-` is stdin [default: the
    /// current directory]
    #[arg(value_name = "FILE", add = completion::job_files())]
    pub files: Vec<Utf8PathBuf>,
    /// Write nothing; print a diff and exit with status 1 if a file is not formatted
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, ClapArgs)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct TestArgs {
    /// Job files, or directories that stand for all job files below them [default: the current directory]
    #[arg(value_name = "JOB", add = completion::job_files())]
    pub jobs: Vec<Utf8PathBuf>,
    /// Update the golden files of jobs that differ
    #[arg(long)]
    pub accept: bool,
    /// Name of the directory with golden files next to each job file
    #[arg(long, value_name = "NAME", default_value = values::GOLDEN, value_parser = values::parse_directory_name)]
    pub golden: String,
    /// Compile all jobs, even those that passed before and are unchanged
    #[arg(long)]
    pub no_cache: bool,
    /// Write a report in the JUnit XML format, for CI; `-` is stdout
    #[arg(long, value_name = "FILE", add = completion::files())]
    pub junit: Option<Utf8PathBuf>,
    /// Target to test (repeatable) [default: `default` of the targets file, all in it, or `local`]
    #[arg(long, short, value_name = "NAME", add = completion::targets())]
    pub target: Vec<String>,
    /// Targets file of all jobs [default: `targets.yaml` next to each job file or in a parent directory]
    #[arg(long, value_name = "FILE", add = completion::job_files())]
    pub targets: Option<Utf8PathBuf>,
    /// Accept what a backend cannot express exactly, with a warning instead of an error
    #[arg(long)]
    pub allow_lossy: bool,
    /// Fail if an image is not in jobc.lock
    #[arg(long)]
    pub locked: bool,
}

impl TestArgs {
    /// The arguments of one job file. User settings and parameters are ignored, so that a test has the same result
    /// everywhere.
    pub(crate) fn of_job(&self, job: Utf8PathBuf) -> JobArgs {
        JobArgs {
            job: Some(job),
            target: self.target.clone(),
            targets: self.targets.clone(),
            allow_lossy: self.allow_lossy,
            locked: self.locked,
            ..JobArgs::default()
        }
    }
}

#[cfg(feature = "mcp")]
#[derive(Debug, ClapArgs)]
pub(crate) struct McpArgs {
    /// Directory whose files the tools may read
    #[arg(long, value_name = "DIR", default_value = ".", add = completion::directories())]
    pub root: Utf8PathBuf,
    /// Add tools that change files in this directory: `fix` and `fmt`
    #[arg(long)]
    pub allow_write: bool,
    /// Add tools that start and stop jobs: `run`, `submit` and `stop`
    #[arg(long)]
    pub allow_run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SkillArgs {
    /// Write the page to `DIR/jobc/SKILL.md`, where agents look for skills
    #[arg(long, value_name = "DIR", add = completion::directories())]
    pub install: Option<Utf8PathBuf>,
    /// Overwrite a file that differs
    #[arg(long, requires = "install")]
    pub force: bool,
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
    /// File of another tool, `-` for stdin, or a directory: then each file in it, as a table
    #[arg(required_unless_present_any = ["command", "list", "file"], conflicts_with = "command", add = completion::job_files())]
    pub job: Option<Utf8PathBuf>,
    /// Job file to write [default: stdout]; for a directory, the directory of the job files
    #[arg(long, short, value_name = "FILE", add = completion::files())]
    pub output: Option<Utf8PathBuf>,
    /// Targets file to write, with the settings that belong to a cluster
    #[arg(long, value_name = "FILE", add = completion::files())]
    pub targets: Option<Utf8PathBuf>,
    /// Print what becomes of each line or option instead of the job file
    #[arg(long, conflicts_with_all = ["output", "targets"])]
    pub explain: bool,
    /// List the formats, or the options of one and what each becomes
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["job", "command"])]
    pub list: Option<String>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Read the variables `SBATCH_…` of the environment, as sbatch does
    #[arg(long)]
    pub sbatch_env: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Command line to import: `docker run …`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Directory to write to
    #[arg(value_name = "DIR", default_value = ".", add = completion::directories())]
    pub directory: Utf8PathBuf,
    /// Example to start from, or a built-in template such as `std/torchrun` [default: hello-cpu]
    #[arg(long, short, value_name = "NAME", add = completion::starters())]
    pub example: Option<String>,
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
    /// The choice named by a setting.
    pub(crate) fn of_setting(text: &str) -> Option<Self> {
        Self::from_str(text, false).ok()
    }

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
    /// Messages between jobc and plug-ins
    Plugin,
    /// What commands about jobs print with `--format json`
    Output,
    /// The REST API of `jobc serve`, as an OpenAPI document
    Openapi,
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
    text.parse().map_err(|error: BackendNameError| error.to_string())
}
