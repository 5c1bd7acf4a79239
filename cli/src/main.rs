//! The `jobc` binary: arguments, files, terminals.
//!
//! All decisions are made in `jobc-compiler`; this crate reads and writes files, and prints.

mod args;
mod commands;
mod completion;
mod disk;
mod fields;
mod input;
#[cfg(target_os = "linux")]
mod interruptible;
mod outcome;
mod output;
#[cfg(target_os = "linux")]
mod progress;
#[cfg(target_os = "linux")]
mod quantity;
#[cfg(target_os = "linux")]
mod registries;
mod report;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser as _};

use args::{Args, Command};
use jobc_oci::{RUNTIME_FAILURE_EXIT_CODE, report_panic};
use outcome::Outcome;

/// A job of 10,000 roles allocates some ten million small values. mimalloc needs three quarters of the C library's time
/// for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(code) = run_early_command().or_else(supervisor) {
        return code;
    }
    std::panic::set_hook(Box::new(|panic| {
        #[cfg(target_os = "linux")]
        jobc_container::terminal::raw_mode::restore();
        report_panic(panic);
        std::process::exit(Outcome::SystemError as i32);
    }));
    completion::answer(Args::full_command);
    let matches = Args::full_command().get_matches();
    #[cfg(target_os = "linux")]
    if matches.subcommand_name() == Some("oci") {
        return jobc_oci::main(std::env::args_os().skip_while(|word| word != "oci")).into();
    }
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    args.color.write_global();
    let outcome = match &args.command {
        Command::Build(build) => commands::build::run(build, &args),
        Command::Check(check) => commands::check::run(check, &args),
        Command::Plan(plan) => commands::plan::run(plan),
        Command::Schema { name } => commands::schema::run(*name),
        Command::Explain { topic } => commands::explain::run(topic.as_deref(), args.format),
        Command::Backends { target } => commands::backends::run(target.as_deref(), &args),
        Command::Import(import) => commands::import::run(import, &args),
        #[cfg(target_os = "linux")]
        Command::Run(run) => return commands::run::run(run, args.format).into(),
        #[cfg(target_os = "linux")]
        Command::Job(command) => return run_job_command(command),
        #[cfg(target_os = "linux")]
        Command::Image(image) => return commands::jobs::into_exit_code(commands::image::run(image)),
        #[cfg(target_os = "linux")]
        Command::Gpu(gpu) => return commands::jobs::into_exit_code(commands::gpu::run(&gpu.command)),
        #[cfg(target_os = "linux")]
        Command::Lock(lock) => commands::lock::run(lock, &args),
        Command::Init(init) => commands::init::run(init),
        Command::Lsp { .. } => commands::lsp::run(),
        #[cfg(target_os = "linux")]
        Command::Doctor { probe: None } => commands::doctor::run(&args),
        #[cfg(target_os = "linux")]
        Command::Doctor { probe: Some(steps) } => commands::doctor::run_probe(steps),
        Command::Completions { shell } => commands::completions::run(*shell),
        Command::Man { all: Some(directory), .. } => commands::man::run_all(directory.as_std_path()),
        Command::Man { command, all: None } => commands::man::run(command.as_deref()),
    };
    ExitCode::from(outcome as u8)
}

/// The commands about jobs on this host.
#[cfg(target_os = "linux")]
fn run_job_command(command: &args::jobs::JobCommand) -> ExitCode {
    use args::jobs::JobCommand;
    commands::jobs::into_exit_code(match command {
        JobCommand::Ps(ps) => commands::ps::run(ps),
        JobCommand::Inspect(inspect) => commands::inspect::run(inspect),
        JobCommand::Logs(logs) => commands::logs::run(logs),
        JobCommand::Events(events) => commands::events::run(events),
        JobCommand::Stats(stats) => commands::stats::run(stats),
        JobCommand::Top(top) => commands::top::run(top),
        JobCommand::Report(report) => commands::report::run(report),
        JobCommand::Exec(exec) => commands::exec::run(exec),
        JobCommand::Trace(trace) => commands::trace::run(trace),
        JobCommand::Stop(stop) => commands::stop::stop(stop),
        JobCommand::Kill(kill) => commands::stop::kill(kill),
        JobCommand::Pause(jobs) => commands::stop::pause(jobs),
        JobCommand::Resume(jobs) => commands::stop::resume(jobs),
        JobCommand::Wait(jobs) => commands::stop::wait(jobs),
        JobCommand::Rm(rm) => commands::rm::rm(rm),
        JobCommand::Gc(gc) => commands::rm::gc(gc),
    })
}

/// A hidden command by which this program starts itself, and its function.
#[cfg(target_os = "linux")]
type InternalCommand = (&'static str, fn(std::env::ArgsOs) -> ExitCode);

#[cfg(target_os = "linux")]
const INTERNAL_COMMANDS: [InternalCommand; 6] = [
    (jobc_job::network::COMMAND, jobc_job::network::hold),
    (jobc_image::unpack::COMMAND, jobc_image::unpack::become_worker),
    (jobc_image::build::worker::COMMAND, jobc_image::build::worker::main),
    (jobc_gpu::hook::COMMAND, jobc_gpu::hook::main),
    (jobc_gpu::mps::COMMAND, jobc_gpu::mps::holder::main),
    (jobc_gpu::nvml::COMMAND, jobc_gpu::nvml::run_query_process),
];

/// `jobc run` and `jobc oci`, selected by the first word, or by the name `jobc-oci` as which podman may call this file.
///
/// They come first, since a container must start in milliseconds: only their own options are built, and nothing of the
/// compiler is used.
#[cfg(target_os = "linux")]
fn run_early_command() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let renamed = std::path::Path::new(&name).file_name().is_some_and(|name| name == "jobc-oci");
    let word = if renamed { Some("oci".into()) } else { words.next() };
    if let Some((_, command)) =
        INTERNAL_COMMANDS.iter().find(|(name, _)| word.as_deref() == Some(name.as_ref()))
    {
        return Some(command(words));
    }
    let words = std::iter::once(name).chain(words);
    if word.as_deref() == Some("oci".as_ref()) {
        return Some(jobc_oci::main(words).into());
    }
    if word.as_deref() != Some("run".as_ref()) {
        return None;
    }
    std::panic::set_hook(Box::new(|panic| {
        jobc_container::terminal::raw_mode::restore();
        report_panic(panic);
        std::process::exit(i32::from(RUNTIME_FAILURE_EXIT_CODE));
    }));
    Some(ExitCode::from(match args::RunCommand::try_parse_from(words) {
        Ok(only) => {
            only.color.write_global();
            commands::run::run(&only.run, only.format)
        }
        Err(error) => jobc_oci::report_usage_error(&error),
    }))
}

/// The supervisor of a job, which `jobc run` starts. It runs as long as the job, and uses nothing of the compiler.
#[cfg(target_os = "linux")]
fn supervisor() -> Option<ExitCode> {
    use jobc_job::supervisor::start;
    let mut words = std::env::args_os().skip(1);
    if words.next().as_deref() != Some(start::COMMAND.as_ref()) {
        return None;
    }
    std::panic::set_hook(Box::new(|panic| {
        report_panic(panic);
        std::process::exit(i32::from(RUNTIME_FAILURE_EXIT_CODE));
    }));
    let words: Vec<_> = words.collect();
    let code = start::become_supervisor(&words).unwrap_or_else(|error| {
        terminal::eprint(&report::container_error(&error));
        error.exit_code()
    });
    Some(code.into())
}
