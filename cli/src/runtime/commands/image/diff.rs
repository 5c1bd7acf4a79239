//! `jobc image diff`: lists the files that differ between two images.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use jobc_image::diff::{Change, base_of, diff};
use jobc_image::{Image, Store};
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::Signals;
use serde_json::json;

use super::name::{find, platform};
use crate::args::FormatArg;
use crate::runtime::args::image_tools::DiffArgs;
use crate::runtime::commands::jobs::{Failure, Result, json_text};
use crate::runtime::interruptible;
use crate::runtime::message::INTERRUPTED;
use crate::table::escape_control;
use crate::terminal;

pub(super) fn run(args: &DiffArgs, store: &Store) -> Result<ExitCode> {
    let platform = platform(args.platform.as_deref())?;
    let image = |word: &str| -> Result<Image> { Ok(store.image(&find(store, word)?.descriptor, &platform)?) };
    let first = image(&args.image)?;
    let (old, new) = if let Some(other) = &args.other {
        (first, image(other)?)
    } else {
        (base(store, &args.image, &first)?, first)
    };
    let stopped = AtomicBool::new(false);
    let signals = Signals::block_forwarded()?;
    let work = || diff(store, &old, &new, &stopped);
    let changes = interruptible::run(&signals, work, |_| stopped.store(true, Ordering::Relaxed))?;
    if stopped.load(Ordering::Relaxed) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let changes = changes?;
    let path = |path: &[u8]| format!("/{}", String::from_utf8_lossy(path));
    if args.output_args.format == FormatArg::Json {
        let list: Vec<_> =
            changes.iter().map(|(change, at)| json!({"change": word(*change), "path": path(at)})).collect();
        terminal::print(&json_text(&list));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (change, at) in &changes {
        let letter = match change {
            Change::Added => 'A',
            Change::Changed => 'C',
            Change::Deleted => 'D',
        };
        let _ = writeln!(text, "{letter} {}", escape_control(&path(at)));
    }
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Changed => "changed",
        Change::Deleted => "deleted",
    }
}

/// The image that another was built on.
fn base(store: &Store, name: &str, image: &Image) -> Result<Image> {
    base_of(store, image)?.ok_or_else(|| {
        let error = Error::new(Kind::State, format!("the base of `{name}` is not in the image store"));
        Failure::usage_error(
            error.help(format!("name the image to compare with: `jobc image diff BASE {name}`")),
        )
    })
}
