//! The `jobc` binary: arguments, files, terminals.
//!
//! Everything that is decided is decided in `jobc-compiler`; this crate reads and writes files, and prints.

mod args;
mod commands;
mod disk;
mod input;
mod output;
mod report;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use args::{Args, Command};

/// A job of 10,000 roles is some ten million small values; this allocator builds it in three quarters of the time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How a command ended; the numbers are in docs/cli.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All is well.
    Fine = 0,
    /// The job has errors, or the output differs.
    Errors = 1,
    /// The command line, or a file it names, cannot be used.
    WrongUse = 2,
    /// Our own fault, or the machine's: a full disk, a bug.
    Fault = 3,
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("jobc: internal error: {panic}");
        eprintln!("jobc: this is a bug in jobc, not in your job; please report it with the job file");
        std::process::exit(Outcome::Fault as i32);
    }));
    let args = Args::parse();
    args.colour.write_global();
    let outcome = match &args.command {
        Command::Build(build) => commands::build::run(build, &args),
        Command::Check(check) => commands::check::run(check, &args),
        Command::Plan(plan) => commands::plan::run(plan, &args),
        Command::Schema { name } => commands::schema::run(*name),
        Command::Explain { code } => commands::explain::run(code.as_deref()),
        Command::Backends { target } => commands::backends::run(target.as_deref(), &args),
        Command::Import(import) => commands::import::run(import, &args),
        Command::Init(init) => commands::init::run(init),
        Command::Completions { shell } => commands::completions::run(*shell),
        Command::Man { command } => commands::man::run(command.as_deref()),
    };
    ExitCode::from(outcome as u8)
}
