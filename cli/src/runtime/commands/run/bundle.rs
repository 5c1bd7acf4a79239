//! `jobc run BUNDLE`: one bundle, in the foreground.
//!
//! A copy of config.json in the container's directory gets the settings of this host. The copy is run by the built-in
//! runtime, or by the runtime of `--oci-runtime`.

mod external;
mod interruptible;
mod node_store;
mod stored;

use super::job::{note_refused_limits, number_lines};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use jobc_container::bundle::Bundle;
use jobc_container::cgroup::UnenforcedLimit;
use jobc_container::container::create::{self, CreateRequest, StartMode};
use jobc_container::container::wait::SignalPolicy;
use jobc_container::options::Options;
use jobc_container::root::Root;
use jobc_container::root::top_directory::TopDirectory;
use jobc_container::scope::ScopeOwner;
use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_job::admission::limits::Limits;
use jobc_job::allocate::{Allocation, AllocationRequest, Devices, mpi};
use jobc_oci::wait_and_delete;
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::signals::Signals;

use crate::runtime::args::run::RunArgs;
use crate::runtime::message::container_warning;
use crate::terminal;

/// Runs a bundle; returns the exit code of its program.
pub(super) fn run(args: &RunArgs, directory: &Path) -> Result<u8> {
    let original = Bundle::open(directory)?;
    reject_unknown_properties(&original)?;
    let id = Id::new(&args.id.clone().unwrap_or_else(|| format!("run-{}", std::process::id())))?;
    // This process ends with the container, so signals need not be unblocked again.
    let inherits = args.inherits_cgroup();
    let signals = ManuallyDrop::new(if inherits {
        Signals::block_forwarded_and_continue()?
    } else {
        Signals::block_forwarded()?
    });
    let begun = create::reserve_again(&Store::standard()?, &id)?;
    let here = args.oci_runtime.is_none();
    let ([] | [_]) = &args.root[..] else {
        let error = Error::new(Kind::Config, "`--root` is given more than once for a bundle");
        return Err(error.help("give `--root` once"));
    };
    let choice = args.root.first().map(String::as_str);
    let way = args.gpu_injection.unwrap_or_default();
    let named: Vec<String> =
        args.devices.iter().flat_map(|words| words.split(',')).map(str::to_owned).collect();
    if args.gpu_injection.is_some() && named.is_empty() && !inherits {
        let error = Error::new(Kind::Config, "`--gpu-injection` does not apply to a bundle without GPUs");
        return Err(error.help("name them with `--devices`, or leave it out"));
    }
    let devices = match &named[..] {
        [] if inherits => Devices::of_step(&original, way)?,
        [] => None,
        named => Some(Devices::of(&original, named, way)?),
    };
    let (stored, _pin) = match stored::provide(args, &original, choice, &signals)? {
        Some(provided) => (Some(provided.root), provided.pin),
        None => (None, None),
    };
    let archive = Root::archive_of(&original, choice).filter(|_| stored.is_none());
    let named = choice.filter(|choice| *choice != "host").map(PathBuf::from);
    if let Some(path) = archive.clone().or(named)
        && let Some(top) = TopDirectory::of(&path)
    {
        terminal::eprint(&format!("note: {}\n", top.note(&path.to_string_lossy())));
    }
    let unpacks = archive.is_some() || stored.as_ref().is_some_and(|stored| stored.copied);
    let request = AllocationRequest {
        choice,
        stored,
        devices,
        secrets: args.secrets.as_deref(),
        directory: begun.directory(),
        complete: here,
    };
    let allocate = || Allocation::of(&original, request);
    let mut allocation =
        if unpacks { interruptible::run(&signals, begun.directory(), allocate)?? } else { allocate()? };
    let (mut config, changed) = allocation.apply(&original)?;
    if args.mpi {
        mpi::add(&mut config.spec, std::env::vars());
    }
    let allocated =
        changed.iter().fold(allocation.to_string(), |all, line| format!("{all}changed: {line}\n"));
    if args.verbose && !args.dry_run {
        terminal::eprint(&allocated);
    }
    let copy = Bundle::of(begun.directory().join("bundle"), config)?;
    write_config(&copy)?;
    if let Some(runtime) = &args.oci_runtime {
        let other = external::ExternalRuntime::new(runtime, &allocation, begun.directory())?;
        if args.dry_run {
            terminal::print(&format!("{allocated}{}\n", other.command_line(&copy.dir, &id)));
            return Ok(0);
        }
        allocation.create_outputs()?;
        return other.run(&copy.dir, &id, &signals);
    }
    let request = CreateRequest {
        options: Options {
            allow_unenforced: args.dry_run || args.allows_unenforced(),
            inherit_cgroup: inherits,
            scope: Some(ScopeOwner::Container(id.to_string())),
            removed_by_creator: !args.keep,
            skip_io_accounting: true,
            secret_environment: std::mem::take(&mut allocation.secret_environment),
            ..Options::default()
        },
        root: Some(allocation.root.clone()),
        ..CreateRequest::default()
    };
    if args.dry_run {
        if !inherits && !args.allows_unenforced() {
            note_refused_limits(&Limits::of([&original.text[..]])?);
        }
        terminal::print(&format!("{allocated}{}", number_lines(&begun.plan(&copy, request)?)));
        return Ok(0);
    }
    allocation.create_outputs()?;
    let made = begun.create(&copy, request, StartMode::Attach, Some(&signals))?;
    if let Some(unit) = made.container.scope.as_ref().filter(|_| args.verbose) {
        terminal::eprint(&format!("cgroup: in the scope `{unit}` of this user's systemd\n"));
    }
    let mut warn = |text: &str| terminal::eprint(&container_warning(text));
    for text in &made.container.warnings {
        warn(text);
    }
    if inherits {
        for text in UnenforcedLimit::in_words(&made.container.unenforced) {
            warn(&text);
        }
    } else {
        for text in &made.container.record.unenforced {
            warn(text);
        }
    }
    wait_and_delete(made, &signals, SignalPolicy::Foreground, args.keep, &mut warn)
}

/// An unknown property would be ignored, so the bundle would not run as written.
fn reject_unknown_properties(bundle: &Bundle) -> Result<()> {
    let Some(first) = bundle.config.unknown.first() else { return Ok(()) };
    let others = match bundle.config.unknown.len() - 1 {
        0 => String::new(),
        1 => ", and 1 more".to_owned(),
        count => format!(", and {count} more"),
    };
    Err(Error::new(Kind::Config, format!("unknown property{others}"))
        .at(first)
        .help("remove it; `jobc oci run` ignores it, as the OCI runtime specification requires"))
}

/// Writes the copy of config.json.
fn write_config(bundle: &Bundle) -> Result<()> {
    let write = || {
        std::fs::create_dir(&bundle.dir)?;
        std::fs::write(bundle.dir.join("config.json"), &bundle.text)
    };
    write().at_path("write the bundle's copy to", &bundle.dir)
}
