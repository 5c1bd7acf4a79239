//! `jobc image save`: writes images to one archive.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use jobc_image::{Descriptor, Platform, Reference, Store, save};
use jobc_sys::error::{Error, Kind};
use jobc_sys::signals::Signals;
use jobc_sys::write_atomic::{AtomicFile, Durability};

use super::name::platform;
use crate::args::FormatArg;
use crate::input::reason;
use crate::runtime::args::image::SaveArgs;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::interruptible;
use crate::runtime::message::interrupted;
use crate::runtime::progress::Meter;
use crate::runtime::quantity::bytes;
use crate::terminal;

/// Number of bytes that are written at a time.
const BUFFER_BYTES: usize = 1 << 18;

/// Images by their names on the command line, and the platform for readers that take only one.
struct SaveRequest {
    images: Vec<(Descriptor, Option<Reference>)>,
    platform: Platform,
}

pub(super) fn run(args: &SaveArgs, store: &Store) -> Result<ExitCode> {
    let request = SaveRequest {
        images: args.images.iter().map(|image| find_image(store, image)).collect::<Result<_>>()?,
        platform: platform(args.platform.as_deref())?,
    };
    let meter = Meter::new(FormatArg::Text, args.quiet);
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        // Only a regular file is replaced, not a pipe or a device.
        Some(path) if fs::metadata(path).is_ok_and(|is| !is.is_file()) => {
            let output =
                File::options().write(true).open(path).map_err(|error| cannot_write(path, &error))?;
            request.write_to_stream(store, &meter, output)?;
        }
        Some(path) => return request.write_to_file(store, meter, path, args.quiet),
        None if args.output.is_none() && io::stdout().is_terminal() => {
            let error = Error::new(Kind::Config, "refusing to write an archive to a terminal");
            return Err(Failure::usage_error(error.help("use `-o FILE`, or write to a pipe")));
        }
        None => request.write_to_stream(store, &meter, io::stdout().lock())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// An image with its name in the archive.
fn find_image(store: &Store, word: &str) -> Result<(Descriptor, Option<Reference>)> {
    let found = super::name::find(store, word)?;
    Ok((found.descriptor, found.name.and_then(|name| name.parse().ok())))
}

impl SaveRequest {
    /// Writes the archive to a stream; a signal ends this program in the middle.
    fn write_to_stream(&self, store: &Store, meter: &Meter, output: impl Write) -> Result<()> {
        let (mut output, on_progress) =
            (BufWriter::with_capacity(BUFFER_BYTES, output), |progress| meter.report(&progress));
        save::save(store, &self.images, &self.platform, &on_progress, &AtomicBool::new(false), &mut output)?;
        meter.clear();
        Ok(())
    }

    /// Writes the archive to a file, which gets its name when it is complete. An interrupted write leaves nothing.
    fn write_to_file(&self, store: &Store, meter: Meter, path: &Path, quiet: bool) -> Result<ExitCode> {
        let part = AtomicFile::create(path, 0o666).map_err(|error| cannot_write(path, &error))?;
        let (on_progress, stopped) = (|progress| meter.report(&progress), AtomicBool::new(false));
        let work = || {
            let mut output = BufWriter::with_capacity(BUFFER_BYTES, part.file());
            save::save(store, &self.images, &self.platform, &on_progress, &stopped, &mut output)
        };
        let signals = Signals::block_forwarded()?;
        let saved = interruptible::run(&signals, work, |_| stopped.store(true, Ordering::Relaxed))?;
        drop(meter);
        if stopped.load(Ordering::Relaxed) {
            return Ok(interrupted("nothing was written"));
        }
        saved?;
        let size = part.commit(Durability::Disk).and_then(|file| Ok(file.metadata()?.len()));
        let size = size.map_err(|error| cannot_write(path, &error))?;
        if !quiet {
            terminal::print(&format!("{}, {}\n", path.display(), bytes(size)));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Error::new(Kind::System, format!("cannot write `{}`: {}", path.display(), reason(error)))
}
