//! The commands that run jobs and containers on this host: Linux, with the feature `runtime`.

pub(crate) mod args;
pub(crate) mod commands;
mod completion;
mod early;
mod interruptible;
mod kept;
mod local_time;
mod message;
mod notice;
mod output;
mod piped_stdin;
mod plugin_sandbox;
mod progress;
mod quantity;
mod registries;
mod settings;
mod signatures;

use std::path::PathBuf;
use std::process::ExitCode;

use args::jobs::JobCommand;
use camino::Utf8Path;
use jobc_schema::plan::JobPlan;

use crate::args::FormatArg;
use crate::outcome::Outcome;
use crate::terminal;
use commands::jobs::into_exit_code;
pub(crate) use commands::run::host_notes;

pub(crate) use args::RuntimeCommand;
pub(crate) use early::run_early_command;

/// Runs a command.
pub(crate) fn run_command(command: &RuntimeCommand, format: FormatArg) -> ExitCode {
    match command {
        RuntimeCommand::Run(run) => commands::run::run(run, format).into(),
        RuntimeCommand::Job(command) => run_job_command(command),
        RuntimeCommand::Image(image) => into_exit_code(commands::image::run(image)),
        RuntimeCommand::Gpu(gpu) => into_exit_code(commands::gpu::run(&gpu.command)),
        RuntimeCommand::Lock(lock) => ExitCode::from(commands::lock::run(lock, format) as u8),
        RuntimeCommand::Submit(submit) if commands::submit_here::is_meant(submit) => into_exit_code(
            commands::submit_here::run_args(submit).map(|run| commands::run::run(&run, format).into()),
        ),
        RuntimeCommand::Submit(submit) => into_exit_code(commands::remote::submit(submit, format)),
        RuntimeCommand::Targets(targets) => into_exit_code(commands::remote::targets(targets)),
        #[cfg(feature = "serve")]
        RuntimeCommand::Serve(serve) => into_exit_code(commands::serve::run(serve)),
        RuntimeCommand::Doctor(doctor) => ExitCode::from(commands::doctor::run(doctor, format) as u8),
    }
}

/// Writes bills of materials of the images of jobs.
pub(crate) fn write_sboms(jobs: &[&JobPlan], directory: &Utf8Path) -> Outcome {
    let root = std::env::var_os("JOBC_IMAGE_ROOT").map(PathBuf::from);
    match commands::image::open(root.as_deref()) {
        Ok(store) => commands::image::sbom::write_of_jobs(&store, jobs, directory),
        Err(error) => {
            terminal::eprint(&message::container_error(&error));
            Outcome::SystemError
        }
    }
}

/// The number of GPUs of this host.
pub(crate) fn gpu_count() -> usize {
    jobc_gpu::Inventory::discover(&jobc_gpu::Host::here()).gpus.len()
}

/// Whether a command refuses to run if a file of settings has errors.
pub(crate) fn needs_settings(command: &RuntimeCommand) -> bool {
    matches!(
        command,
        RuntimeCommand::Run(_)
            | RuntimeCommand::Submit(_)
            | RuntimeCommand::Image(_)
            | RuntimeCommand::Lock(_)
    )
}

/// The commands about jobs on this host.
fn run_job_command(command: &JobCommand) -> ExitCode {
    into_exit_code(match command {
        JobCommand::Ps(ps) => commands::ps::run(ps),
        JobCommand::Inspect(inspect) => commands::inspect::run(inspect),
        JobCommand::Logs(logs) => commands::logs::run(logs),
        JobCommand::Events(events) => commands::events::run(events),
        JobCommand::Stats(stats) => commands::stats::run(stats),
        JobCommand::Top(top) => commands::top::run(top),
        JobCommand::Report(report) => commands::report::run(report),
        JobCommand::History(history) => commands::history::run(history),
        JobCommand::Metrics(metrics) => commands::metrics::run(metrics),
        JobCommand::Exec(exec) => commands::exec::run(exec),
        JobCommand::PortForward(forward) => commands::port_forward::run(forward),
        JobCommand::Copy(copy) => commands::copy::run(copy),
        JobCommand::Trace(trace) => commands::trace::run(trace),
        JobCommand::Stop(stop) => commands::stop::stop(stop),
        JobCommand::Kill(kill) => commands::kill::kill(kill),
        JobCommand::Pause(jobs) => commands::pause::pause(jobs),
        JobCommand::Suspend(jobs) => commands::pause::suspend(jobs),
        JobCommand::Resume(jobs) => commands::pause::resume(jobs),
        JobCommand::Wait(jobs) => commands::wait::wait(jobs),
        JobCommand::Rm(rm) => commands::rm::rm(rm),
        JobCommand::Gc(gc) => commands::rm::gc(gc),
    })
}

/// `jobc why JOB`: why a job ended or waits; none if the word names none.
pub(crate) fn why_job(word: &str, format: FormatArg) -> Option<ExitCode> {
    commands::why::why(word, format)
}

/// Adds `oci`, whose options are defined in a separate crate.
pub(crate) fn add_commands(jobc: clap::Command) -> clap::Command {
    jobc.subcommand(jobc_oci::command().name("oci"))
}

/// Runs `oci`, which is not part of [`RuntimeCommand`].
pub(crate) fn run_hidden_command(
    matches: &clap::ArgMatches,
    _all: fn() -> clap::Command,
) -> Option<ExitCode> {
    (matches.subcommand_name() == Some("oci"))
        .then(|| jobc_oci::main(std::env::args_os().skip_while(|word| word != "oci")).into())
}

/// Ends the raw mode of the terminal.
pub(crate) fn restore_terminal() {
    jobc_container::terminal::raw_mode::restore();
}

/// The commands that this build does not have: none.
pub(crate) fn with_hidden_commands(
    jobc: clap::Command,
    _names: impl Iterator<Item = &'static str>,
) -> clap::Command {
    jobc
}
