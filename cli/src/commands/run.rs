//! `jobc run`: one bundle, on this machine, in the foreground.

use jobc_runtime::bundle::Bundle;
use jobc_runtime::container::Options;
use jobc_runtime::container::make::{self, Request, Then};
use jobc_runtime::container::wait::Manner;
use jobc_runtime::error::{Error, Kind, Result};
use jobc_runtime::signals::Signals;
use jobc_runtime::state::Id;
use jobc_runtime::state::store::Store;

use super::oci::attend;
use crate::args::run::RunArgs;
use crate::report::{container_error, container_warning};
use crate::terminal;

/// The exit code that stands for our own failure, as with other programs that run programs (env(1), timeout(1)).
pub(crate) const OWN_FAILURE: u8 = 125;

/// Says what is wrong with a command line, or prints the help that it asks for.
pub(crate) fn misused(error: &clap::Error) -> u8 {
    let _ = error.print();
    if error.use_stderr() { OWN_FAILURE } else { 0 }
}

/// Runs a bundle; returns the exit code of its program.
pub(crate) fn run(args: &RunArgs) -> u8 {
    match bundle(args) {
        Ok(code) => code,
        Err(error) => {
            terminal::eprint(&container_error(&error));
            error.exit_code()
        }
    }
}

fn bundle(args: &RunArgs) -> Result<u8> {
    let original = Bundle::open(&args.bundle)?;
    refuse_unknown(&original)?;
    let store = Store::standard()?;
    let id = args.id.clone().unwrap_or_else(|| format!("run-{}", std::process::id()));
    let id = Id::new(&id)?;
    let signals = Signals::take()?;
    let begun = make::begin(&store, &id)?;
    let options = Options { allow_unenforced: args.allow_unenforced, ..Options::default() };
    let request = Request { options, ..Request::default() };
    let made = begun.make(&original, request, Then::Attend)?;
    for unenforced in &made.container.record.unenforced {
        terminal::eprint(&container_warning(unenforced));
    }
    attend(made, &signals, Manner::AsCommand, args.keep)
}

/// What nobody knows would not be kept, so the bundle would not run as it was written.
fn refuse_unknown(bundle: &Bundle) -> Result<()> {
    let Some(first) = bundle.config.unknown.first() else { return Ok(()) };
    let others = match bundle.config.unknown.len() - 1 {
        0 => String::new(),
        1 => ", nor one more".to_owned(),
        count => format!(", nor {count} more"),
    };
    Err(Error::new(Kind::Config, format!("nobody knows this property{others}"))
        .at(first)
        .help("take it out; `jobc oci run` would ignore it, as the OCI runtime specification asks"))
}
