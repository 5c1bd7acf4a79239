//! `jobc run`: a job file, a built plan, one bundle or a command, on this host.
//!
//! The type of the input is detected, so that one command runs all of them. A bundle is checked first: its start takes
//! milliseconds and uses nothing of the compiler.

mod bundle;
mod command;
mod job;
mod pull;
mod watch;

pub(crate) use job::host_notes;

use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use jobc_sys::error::{Error, Kind, Result, file_error};

use crate::args::FormatArg;
use crate::runtime::args::run::RunArgs;
use crate::runtime::args::run_command::CommandArgs;
use crate::runtime::message::container_error;
use crate::runtime::settings::allows_unenforced;
use crate::terminal;

/// Runs what the arguments name; returns the exit code: that of the program of a bundle, or that of a job.
pub(crate) fn run(args: &RunArgs, format: FormatArg) -> u8 {
    if let Some(note) = nv_gpu_note(args, std::env::var("NV_GPU").ok().as_deref()) {
        terminal::eprint(&note);
    }
    let code = allows_unenforced().and_then(|_| RunInput::of_arguments(args)).and_then(|what| match what {
        RunInput::Command => {
            reject_options(args, &BUNDLE_OPTIONS, "a command")?;
            reject_options(args, &FILE_OPTIONS, "a command, which has no job file")?;
            if args.watch {
                return watch::run(args, None);
            }
            job::run_command(args, format)
        }
        RunInput::Bundle(directory) => {
            reject_options(args, &JOB_OPTIONS, "a bundle")?;
            if args.oci_runtime.is_some() {
                reject_options(args, &BUILT_IN_RUNTIME_OPTIONS, "a bundle that another runtime runs")?;
            }
            reject_format(format)?;
            bundle::run(args, &directory)
        }
        RunInput::Plan(directory) => {
            reject_options(args, &BUNDLE_OPTIONS, "a job")?;
            reject_options(args, &JOB_FILE_OPTIONS, "the directory of a built plan")?;
            job::run_plan(args, &directory, format)
        }
        RunInput::Job(path) => {
            reject_options(args, &BUNDLE_OPTIONS, "a job")?;
            if args.watch {
                return watch::run(args, path.as_deref());
            }
            job::run_file(args, path.as_deref(), format)
        }
    });
    code.unwrap_or_else(|error| {
        terminal::eprint(&container_error(&error));
        error.exit_code()
    })
}

/// The note on `NV_GPU`, by which nvidia-docker 1 chose GPUs. It is ignored, so that a leftover shell variable does not
/// affect jobs.
fn nv_gpu_note(args: &RunArgs, value: Option<&str>) -> Option<String> {
    let value = value.filter(|value| !value.is_empty())?;
    let by_option = args.no_gpu || !args.devices.is_empty() || args.command.gpus.is_some();
    if by_option || args.quiet {
        return None;
    }
    let option = if args.command.command.is_empty() { "--devices " } else { "--gpus device=" };
    let names = value.split([',', ' ']).filter(|name| !name.is_empty()).collect::<Vec<_>>().join(",");
    Some(format!("jobc: `NV_GPU` is not read; to choose GPUs, write `{option}{names}`\n"))
}

/// The input to run.
#[derive(Debug, PartialEq, Eq)]
enum RunInput {
    /// The words after `--`.
    Command,
    /// A directory with a config.json, or one for which the bundle reader reports why it is not a bundle.
    Bundle(PathBuf),
    /// A directory with a plan.json.
    Plan(Utf8PathBuf),
    /// A job file, its directory, or stdin; the job file of the current directory if absent.
    Job(Option<Utf8PathBuf>),
}

impl RunInput {
    fn of_arguments(args: &RunArgs) -> Result<Self> {
        let CommandArgs { command, gpus: command_gpus, .. } = &args.command;
        match (&args.what, &command[..]) {
            (None, [_, ..]) => Ok(Self::Command),
            // The command is that of the image.
            (None, []) if args.command.container.image.is_some() => Ok(Self::Command),
            (Some(what), [_, ..]) => {
                let message = format!("both `{}` and a command after `--` are named", what.display());
                Err(Error::new(Kind::Config, message)
                    .help("write only one: `jobc run PATH`, or `jobc run -- COMMAND`"))
            }
            (what, []) => {
                if let Some(gpus) = command_gpus.as_ref().filter(|gpus| !gpus.devices.is_empty()) {
                    let error = Error::new(Kind::Config, "`--gpus` needs a command");
                    return Err(error.help(format!(
                        "a job file requests GPUs by `resources.gpu`; to name them, write `--devices {}`",
                        gpus.devices.join(",")
                    )));
                }
                if let Some((option, _)) = COMMAND_OPTIONS.iter().find(|(_, given)| given(&args.command)) {
                    if let (Some(image), Some(word)) = (&args.command.container.image, what) {
                        let word = word.display();
                        let message = format!("both the image `{image}` and the path `{word}` are named");
                        return Err(Error::new(Kind::Config, message).help(format!(
                            "write a command after `--`, as in `jobc run --image {image} -- {word}`"
                        )));
                    }
                    let message = format!("`{option}` needs a command");
                    return Err(Error::new(Kind::Config, message).help(format!(
                        "write the command after `--`, as in `jobc run {option} … -- python train.py`; a job file has fields for it"
                    )));
                }
                Self::of(what.as_deref())
            }
        }
    }

    fn of(given: Option<&Path>) -> Result<Self> {
        let Some(given) = given else { return Ok(Self::Job(None)) };
        let text = || {
            Utf8PathBuf::from_path_buf(given.to_owned()).map_err(|path| {
                let message = format!("the path `{}` is not UTF-8", path.display());
                Error::new(Kind::Config, message).help("rename it; a plan contains the path as text")
            })
        };
        if given == "-" {
            return text().map(Some).map(Self::Job);
        }
        if let Err(error) = given.metadata() {
            return Err(file_error("open", given, &error)
                .help("name a job file, the directory of a built plan, or a bundle; a command goes after `--`, as in `jobc run -- python train.py`"));
        }
        if given.is_dir() {
            let has = |name: &str| given.join(name).is_file();
            if !has("config.json") && has("plan.json") {
                return text().map(Self::Plan);
            }
            if !has("config.json") && crate::input::JOB_FILE_NAMES.into_iter().any(has) {
                return text().map(Some).map(Self::Job);
            }
            if !has("config.json")
                && let [only] = &job_files(given)[..]
            {
                let message = format!("`{}` has no `job.yaml`", given.display());
                let help = format!("is this the job file? `jobc run {}`", given.join(only).display());
                return Err(Error::new(Kind::Config, message).help(help));
            }
        } else if given.is_file() {
            return match given.file_name().and_then(|name| name.to_str()) {
                Some("plan.json") => Ok(Self::Plan(text()?.with_file_name(""))),
                Some("config.json") => Ok(Self::Bundle(given.to_owned())),
                _ => match command::interpreter_of(given).filter(|_| !is_foreign(given)) {
                    Some(interpreter) => Err(program_error(given, interpreter)),
                    None => text().map(Some).map(Self::Job),
                },
            };
        }
        Ok(Self::Bundle(given.to_owned()))
    }
}

/// Whether a script is a job of another tool: a batch script of Slurm, or a line of `docker run`.
fn is_foreign(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    jobc_compiler::import::text_format(&jobc_compiler::source::Source::new("", text)).is_some()
}

/// The names of the YAML and JSON files of a directory that may be job files.
fn job_files(directory: &Path) -> Vec<std::ffi::OsString> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let is_job = |name: &std::ffi::OsString| {
        let extension = Path::new(name).extension().and_then(|end| end.to_str());
        matches!(extension, Some("yaml" | "yml" | "json"))
            && name != "targets.yaml"
            && name != "sourcemap.json"
    };
    names.filter(is_job).collect()
}

/// The error for a program instead of a job file.
fn program_error(path: &Path, interpreter: &str) -> Error {
    let path = path.display().to_string();
    let script = jobc_schema::shell::quote(&path);
    Error::new(Kind::Config, format!("`{path}` is a program, not a job file"))
        .help(format!("write a command after `--`: `jobc run -- {interpreter} {script}`"))
}

/// An option and whether it is given.
type OptionCheck = (&'static str, fn(&RunArgs) -> bool);

/// Options only of jobs, only of bundles, of the built-in runtime, and of job files.
#[rustfmt::skip]
const JOB_OPTIONS: [OptionCheck; 21] = [
    ("--retry-of", |args| args.retry_of.is_some()),
    ("--set", |args| !args.set.is_empty()), ("--params", |args| !args.params.is_empty()),
    ("--target", |args| args.target.is_some()), ("--targets", |args| args.targets.is_some()),
    ("--allow-lossy", |args| args.allow_lossy), ("--locked", |args| args.locked),
    ("--scale", |args| !args.scale.is_empty()), ("--no-gpu", |args| args.no_gpu), ("--queue", |args| args.queue),
    ("--parallel", |args| args.parallel.is_some()), ("--publish", |args| !args.publish.is_empty()),
    ("--detach", |args| args.detach), ("--interactive", |args| args.interactive),
    ("--terminal", |args| args.terminal.is_some()), ("--no-logs", |args| args.no_logs),
    ("--quiet", |args| args.quiet), ("--watch", |args| args.watch), ("--gpu-share", |args| args.gpu_share.is_some()),
    ("--resume", |args| args.resume), ("--plain", |args| args.plain),
];
#[rustfmt::skip]
const BUNDLE_OPTIONS: [OptionCheck; 5] = [
    ("--oci-runtime", |args| args.oci_runtime.is_some()), ("--id", |args| args.id.is_some()),
    ("--cgroup", |args| args.cgroup.is_some()), ("--secrets", |args| args.secrets.is_some()),
    ("--mpi", |args| args.mpi),
];
/// Options of the built-in runtime.
#[rustfmt::skip]
const BUILT_IN_RUNTIME_OPTIONS: [OptionCheck; 5] = [
    ("--allow-unenforced", |args| args.allow_unenforced), ("--keep", |args| args.keep),
    ("--cgroup", |args| args.cgroup.is_some()), ("--secrets", |args| args.secrets.is_some()),
    ("--image-root", RunArgs::sets_image_root),
];
/// Options that override values of a job file.
#[rustfmt::skip]
const FILE_OPTIONS: [OptionCheck; 7] = [
    ("--retry-of", |args| args.retry_of.is_some()),
    ("--set", |args| !args.set.is_empty()), ("--params", |args| !args.params.is_empty()),
    ("--scale", |args| !args.scale.is_empty()), ("--locked", |args| args.locked),
    ("--parallel", |args| args.parallel.is_some()), ("--resume", |args| args.resume),
];
#[rustfmt::skip]
const JOB_FILE_OPTIONS: [OptionCheck; 11] = [
    ("--retry-of", |args| args.retry_of.is_some()),
    ("--set", |args| !args.set.is_empty()), ("--params", |args| !args.params.is_empty()),
    ("--target", |args| args.target.is_some()), ("--targets", |args| args.targets.is_some()),
    ("--allow-lossy", |args| args.allow_lossy), ("--scale", |args| !args.scale.is_empty()),
    ("--no-gpu", |args| args.no_gpu), ("--locked", |args| args.locked), ("--watch", |args| args.watch),
    ("--resume", |args| args.resume),
];

/// An option of a command and whether it is given.
type CommandOptionCheck = (&'static str, fn(&CommandArgs) -> bool);

/// Options that stand for fields of the job file that a command does not have.
#[rustfmt::skip]
const COMMAND_OPTIONS: [CommandOptionCheck; 30] = [
    ("--gpus", |args| args.gpus.is_some()), ("--cpus", |args| args.cpus.is_some()),
    ("--memory", |args| args.memory.is_some()), ("--shm", |args| args.shm.is_some()),
    ("--timeout", |args| args.timeout.is_some()), ("--env", |args| !args.env.is_empty()),
    ("--name", |args| args.name.is_some()), ("--save", |args| args.save.is_some()),
    ("--image", |args| args.container.image.is_some()), ("--volume", |args| !args.container.volume.is_empty()),
    ("--workdir", |args| args.container.workdir.is_some()), ("--user", |args| args.container.user.is_some()),
    ("--network", |args| args.container.network.is_some()),
    ("--entrypoint", |args| args.container.entrypoint.is_some()),
    ("--ulimit", |args| !args.container.ulimit.is_empty()), ("--cap-add", |args| !args.container.cap_add.is_empty()),
    ("--cap-drop", |args| !args.container.cap_drop.is_empty()), ("--privileged", |args| args.container.privileged),
    ("--device-read-bps", |args| !args.container.device_read_bps.is_empty()),
    ("--device-write-bps", |args| !args.container.device_write_bps.is_empty()),
    ("--device-read-iops", |args| !args.container.device_read_iops.is_empty()),
    ("--device-write-iops", |args| !args.container.device_write_iops.is_empty()),
    ("--tmpfs", |args| !args.container.tmpfs.is_empty()), ("--device", |args| !args.container.device.is_empty()),
    ("--add-host", |args| !args.container.add_host.is_empty()), ("--dns", |args| !args.container.dns.is_empty()),
    ("--dns-search", |args| !args.container.dns_search.is_empty()),
    ("--dns-option", |args| !args.container.dns_option.is_empty()),
    ("--read-only", |args| args.container.read_only), ("--rm", |args| args.container.rm),
];

/// Rejects options that do not apply to the input, because a silently ignored option would seem to work.
fn reject_options(args: &RunArgs, options: &[OptionCheck], what: &str) -> Result<()> {
    match options.iter().find(|(_, given)| given(args)) {
        None => Ok(()),
        Some((option, _)) => Err(Error::new(Kind::Config, format!("`{option}` does not apply to {what}"))
            .help("`jobc run --help` lists the options of jobs and bundles")),
    }
}

/// Rejects `--format`: a bundle is not compiled, so it has no findings, and stdout belongs to its program.
fn reject_format(format: FormatArg) -> Result<()> {
    if format == FormatArg::Text {
        return Ok(());
    }
    Err(Error::new(Kind::Config, "`--format` does not apply to a bundle")
        .help("leave it out; errors of `jobc oci --log FILE --log-format json run` are JSON"))
}

#[cfg(test)]
mod tests;
