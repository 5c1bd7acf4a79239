//! The `jobc` binary: arguments, files, terminals.
//!
//! All decisions are made in `jobc-compiler`; this crate reads and writes files, and prints. The commands of
//! [`commands`] are on every platform. What runs jobs and containers is in `runtime`: on Linux, with the feature
//! `runtime`. Elsewhere, `without_runtime` replaces it. The rest of what depends on the platform is in [`platform`].

mod args;
mod boundary;
mod changes;
mod color;
mod command_line;
mod commands;
mod completion;
mod confine;
mod disk;
mod examples;
mod fields;
mod input;
mod inputs;
mod job_files;
#[cfg(feature = "mcp")]
mod mcp;
mod origins;
mod outcome;
mod output;
mod plan_text;
mod platform;
mod plugins;
mod replace;
mod report;
mod settings;
mod source_state;
mod table;
mod template_cache;
mod terminal;
mod watch;

#[cfg(all(target_os = "linux", feature = "runtime"))]
mod runtime;
#[cfg(not(all(target_os = "linux", feature = "runtime")))]
#[path = "without_runtime.rs"]
mod runtime;

use std::process::ExitCode;

use jobc_terminal::report_panic;

use outcome::Outcome;

fn main() -> ExitCode {
    if let Some(code) = runtime::run_early_command() {
        return code;
    }
    std::panic::set_hook(Box::new(|panic| {
        runtime::restore_terminal();
        report_panic(panic);
        std::process::exit(Outcome::SystemError as i32);
    }));
    command_line::run()
}
