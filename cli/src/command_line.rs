//! The command line: all commands, and the options that each of them has. Doc comments are help texts.
#![allow(rustdoc::broken_intra_doc_links)] // `[default: ...]` is not a link

mod other_words;
mod overview;

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

#[cfg(feature = "mcp")]
use crate::args::McpArgs;
use crate::args::config::ConfigArgs;
use crate::args::standard_library::StdCommand;
use crate::args::values::GLOBAL_OPTION_ORDER;
use crate::args::{
    BuildArgs, CheckArgs, ColorArg, DiffArgs, FmtArgs, FormatArg, ImportArgs, InitArgs, PlanArgs, SchemaArg,
    SkillArgs, TestArgs, WhyArgs,
};
use crate::color::color_setting;
use crate::commands;
use crate::completion;
use crate::outcome::Outcome;
use crate::runtime::{self, RuntimeCommand};
use crate::{settings, terminal};

/// Compile a job file into Dockerfiles, OCI bundles, cgroup files, Kubernetes, Slurm and OpenPAI jobs, or run it on
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
    /// When to use colors [default: auto]
    #[arg(
        long,
        global = true,
        value_enum,
        env = "JOBC_COLOR",
        value_name = "WHEN",
        alias = "colour",
        display_order = GLOBAL_OPTION_ORDER
    )]
    pub color: Option<ColorArg>,
    #[command(subcommand)]
    pub command: Command,
}

impl Args {
    /// All commands of this platform.
    pub(crate) fn full_command() -> clap::Command {
        let own = runtime::add_commands(Self::command());
        let template = overview::template(&own);
        own.help_template(template)
    }
}

/// The commands of `jobc backend`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum BackendCommand {
    /// Check that a plug-in follows its contract, with a small job for each feature
    Test {
        /// Name of the plug-in
        name: String,
    },
}

/// The commands; `overview` has their order in `jobc --help`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile a job file into the files of each target
    Build(BuildArgs),
    /// Check job files without writing anything
    #[command(aliases = ["lint", "validate"])]
    Check(CheckArgs),
    #[command(flatten)]
    Runtime(RuntimeCommand),
    /// Print a summary of the resolved plan, or all of it
    ///
    /// `--format json` prints the content of plan.json, `--format yaml` the same as YAML.
    Plan(PlanArgs),
    /// Print a JSON Schema, or the OpenAPI document of `jobc serve`
    Schema {
        /// Schema to print
        #[arg(value_enum, default_value_t = SchemaArg::Job)]
        name: SchemaArg,
        /// Print the path of a file with the schema, for the settings of an editor
        ///
        /// The file is the one installed by a package, or a copy in `~/.local/share/jobc/schemas`.
        #[arg(long)]
        path: bool,
    },
    /// Explain a diagnostic code or a field, or list all codes
    ///
    /// A field is its path in a job file or a targets file: `roles.train.retry`, `resources.memory`, `backends`. Names
    /// chosen in the file can be any word, or be omitted. `--format json` prints pages as JSON; without a topic, all
    /// codes and fields.
    Explain {
        /// Diagnostic code, such as `J0101`, or a field, such as `roles.train.retry` [default: list all codes]
        #[arg(add = completion::topics())]
        topic: Option<String>,
    },
    /// Compare the plan and the built files with a revision
    ///
    /// Both versions of the job are compiled, and their values are compared; nothing is written. The exit status is 0
    /// if they are equal, 1 if they differ, and 3 on errors.
    Diff(DiffArgs),
    /// Format job files and targets files
    ///
    /// Indentation, blank lines, quotes and the order of keys become canonical; comments stay with their keys, and the
    /// meaning stays the same. The names of changed files are printed.
    Fmt(FmtArgs),
    /// Compare the files of all jobs with their golden files
    ///
    /// Each job file is compiled and compared with the directory `golden` next to it: `golden/<job>/<target>/`. Nothing
    /// is written without `--accept`. The exit status is 0 if all are equal, otherwise 1.
    Test(TestArgs),
    /// Trace a line of a built file to the job file, or the reverse
    ///
    /// For a file that `jobc build` has written, the answer comes from the source map next to it: the field of the job,
    /// the setting of the target or the default. For a job file, the job is compiled and nothing is written.
    Why(WhyArgs),
    /// Show which fields each backend supports
    ///
    /// `--format json` adds the reasons.
    Backends {
        /// Use the settings of this target of `targets.yaml` [default: the built-in targets]
        #[arg(long, value_name = "NAME", add = completion::targets())]
        target: Option<String>,
    },
    /// Test a backend that is a plug-in
    Backend {
        #[command(subcommand)]
        command: BackendCommand,
    },
    /// List and show the built-in templates
    Std {
        #[command(subcommand)]
        command: StdCommand,
    },
    /// Convert a file of another tool to a job file
    Import(ImportArgs),
    /// Create a starter job from an example
    Init(InitArgs),
    /// List and change user and project settings
    Config(ConfigArgs),
    /// Start the language server for editors
    ///
    /// The server speaks the Language Server Protocol (LSP) on stdin and stdout.
    Lsp {
        /// Accepted for compatibility; the server always uses stdin and stdout
        #[arg(long, hide = true)]
        stdio: bool,
    },
    /// Serve tools to AI agents
    ///
    /// The server speaks the Model Context Protocol (MCP) on stdin and stdout. Its tools check, plan, explain and compare
    /// job files, and show jobs and their output. Without `--allow-write` and `--allow-run` they change nothing.
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    /// Print how AI agents work with jobc
    ///
    /// The page is an Agent Skill, SKILL.md: the commands in their order, findings, exit codes and the form of a job file.
    Skill(SkillArgs),
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

/// Ends with the help, the version or the error of the command line. Help that cannot be written is an error, which clap
/// ignores.
fn exit_with(error: &clap::Error) -> ! {
    let is_plain = anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never;
    if error.use_stderr() || !is_plain {
        error.exit();
    }
    terminal::print(&error.render().to_string());
    std::process::exit(error.exit_code());
}

/// Runs the command of the command line.
pub(crate) fn run() -> ExitCode {
    completion::answer(Args::full_command);
    let jobc = runtime::with_hidden_commands(Args::full_command(), overview::names());
    let matches =
        jobc.try_get_matches().unwrap_or_else(|error| match other_words::answer(&error, &given_words()) {
            Some(answer) => {
                terminal::eprint(&answer);
                std::process::exit(Outcome::UsageError as i32);
            }
            None => exit_with(&error),
        });
    if let Some(code) = runtime::run_hidden_command(&matches, Args::full_command) {
        return code;
    }
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| exit_with(&error));
    let loaded = settings::load();
    if let Err(error) = loaded
        && needs_settings(&args.command)
    {
        terminal::eprint(&error.to_string());
        return ExitCode::from(Outcome::UsageError as u8);
    }
    args.color.unwrap_or_else(color_setting).write_global();
    let format = args.format;
    if let Command::Why(why) = &args.command
        && let Some(word) =
            why.job.job.as_deref().filter(|word| !word.as_str().contains(':') && !word.exists())
        && let Some(code) = runtime::why_job(word.as_str(), format)
    {
        return code;
    }
    let outcome = match &args.command {
        Command::Build(build) => commands::build::run(build, format, runtime::write_sboms),
        Command::Check(check) => commands::check::run(check, format, runtime::host_notes),
        Command::Plan(plan) => commands::plan::run(plan),
        Command::Schema { name, path } => commands::schema::run(*name, *path),
        Command::Explain { topic } => commands::explain::run(topic.as_deref(), format),
        Command::Diff(diff) => commands::diff::run(diff, format),
        Command::Fmt(fmt) => commands::fmt::run(fmt),
        Command::Test(test) => commands::test::run(test, format),
        Command::Why(why) => commands::why::run(why, format),
        Command::Backends { target } => commands::backends::run(target.as_deref(), format),
        Command::Backend { command: BackendCommand::Test { name } } => {
            commands::backends::conformance::run(name)
        }
        Command::Std { command } => commands::standard_library::run(command, format),
        Command::Import(import) => commands::import::run(import, format),
        Command::Runtime(command) => return runtime::run_command(command, format),
        Command::Init(init) => commands::init::run(init, runtime::gpu_count),
        Command::Config(config) => commands::config::run(config, format),
        Command::Lsp { .. } => commands::lsp::run(),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => crate::mcp::run(args),
        Command::Skill(skill) => commands::skill::run(skill),
        Command::Completions { shell } => commands::completions::run(*shell),
        Command::Man { all: Some(directory), .. } => {
            commands::man::run_all(directory.as_std_path(), Args::full_command())
        }
        Command::Man { command, all: None } => commands::man::run(command.as_deref(), Args::full_command()),
    };
    ExitCode::from(outcome as u8)
}

/// The command line, for messages.
fn given_words() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Whether a command refuses to run if a file of settings has errors. Other commands only lose their color settings:
/// stopping a job or correcting the file must work in any directory.
fn needs_settings(command: &Command) -> bool {
    match command {
        Command::Build(_) | Command::Check(_) | Command::Plan(_) => true,
        Command::Runtime(command) => runtime::needs_settings(command),
        _ => false,
    }
}
