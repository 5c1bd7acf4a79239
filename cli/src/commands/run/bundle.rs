//! `jobc run BUNDLE`: one bundle, in the foreground.
//!
//! A copy of config.json in the container's folder gets what only this machine knows, and that copy is what runs: here,
//! or under the runtime that `--oci-runtime` names.

mod interruptible;
mod other;

use std::mem::ManuallyDrop;
use std::path::Path;

use jobc_container::bundle::Bundle;
use jobc_container::container::make::{self, Request, Then};
use jobc_container::container::wait::Manner;
use jobc_container::options::Options;
use jobc_container::prepare::listing::Line;
use jobc_container::root::Root;
use jobc_container::scope::Holder;
use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_job::allocate::{Allocation, Devices};
use jobc_oci::attend;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::signals::Signals;

use crate::args::run::RunArgs;
use crate::report::container_warning;
use crate::terminal;

/// Runs a bundle; returns the exit code of its program.
pub(super) fn run(args: &RunArgs, folder: &Path) -> Result<u8> {
    let original = Bundle::open(folder)?;
    refuse_unknown(&original)?;
    let id = Id::new(&args.id.clone().unwrap_or_else(|| format!("run-{}", std::process::id())))?;
    // This process ends with the container: no signal need be let through again.
    let signals = ManuallyDrop::new(Signals::take()?);
    let begun = make::begin(&Store::standard()?, &id)?;
    let here = args.oci_runtime.is_none();
    let ([] | [_]) = &args.root[..] else {
        let error = Error::new(Kind::Config, "a bundle has one root");
        return Err(error.help("give `--root` once"));
    };
    let choice = args.root.first().map(String::as_str);
    let way = args.gpu_injection.unwrap_or_default();
    let named: Vec<String> =
        args.devices.iter().flat_map(|words| words.split(',')).map(str::to_owned).collect();
    if args.gpu_injection.is_some() && named.is_empty() {
        let error = Error::new(Kind::Config, "`--gpu-injection` means nothing for a bundle without GPUs");
        return Err(error.help("name them with `--devices`, or leave it out"));
    }
    let devices = if named.is_empty() { None } else { Some(Devices::of(&original, &named, way)?) };
    let allocate = || Allocation::of(&original, choice, devices, begun.folder(), here);
    let allocation = if Root::takes_time(&original, choice) {
        interruptible::run(&signals, begun.folder(), allocate)??
    } else {
        allocate()?
    };
    let (text, changed) = allocation.apply(&original)?;
    let allocated =
        changed.iter().fold(allocation.to_string(), |all, line| format!("{all}changed: {line}\n"));
    if args.verbose && !args.dry_run {
        terminal::eprint(&allocated);
    }
    let folder = begun.folder().join("bundle");
    write(&folder, &text)?;
    let copy = Bundle::open(&folder)?;
    if let Some(runtime) = &args.oci_runtime {
        let other = other::Runtime::new(runtime, &allocation, begun.folder())?;
        if args.dry_run {
            terminal::print(&format!("{allocated}{}\n", other.shown(&folder, &id)));
            return Ok(0);
        }
        allocation.make()?;
        return other.run(&folder, &id, &signals);
    }
    let request = Request {
        options: Options {
            allow_unenforced: args.allow_unenforced,
            scope: Some(Holder::Container(id.to_string())),
            io_uncounted: true,
            ..Options::default()
        },
        root: Some(allocation.root.clone()),
        ..Request::default()
    };
    if args.dry_run {
        terminal::print(&format!("{allocated}{}", numbered(&begun.plan(&copy, request)?)));
        return Ok(0);
    }
    allocation.make()?;
    let made = begun.make(&copy, request, Then::Attend, Some(&signals))?;
    if let Some(unit) = made.container.scope.as_ref().filter(|_| args.verbose) {
        terminal::eprint(&format!(
            "control group: in the scope `{unit}` that this user's systemd has made\n"
        ));
    }
    let mut warn = |text: &str| terminal::eprint(&container_warning(text));
    for text in made.container.said.iter().chain(&made.container.record.unenforced) {
        warn(text);
    }
    attend(made, &signals, Manner::AsCommand, args.keep, &mut warn)
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

/// Writes the copy of config.json.
fn write(folder: &Path, text: &[u8]) -> Result<()> {
    std::fs::create_dir(folder).and_then(|()| std::fs::write(folder.join("config.json"), text)).map_err(
        |error| {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
            Error::machine(format!("write the bundle's copy to `{}`", folder.display()), errno)
        },
    )
}

/// What would be done, a line each with its number and the field of config.json that asks for it.
pub(super) fn numbered(lines: &[Line]) -> String {
    (1..).zip(lines).map(|(number, line)| format!("{number:3}  {line}\n")).collect()
}
