//! `jobc gpu cdi`: writes a CDI file of this host's GPUs for other engines.

use std::path::Path;
use std::process::ExitCode;

use jobc_gpu::cdi::generate::{DriverFiles, Source};
use jobc_gpu::{Host, Inventory};
use jobc_schema::gpu::{DriverCapability, Vendor};
use jobc_sys::error::{Error, Kind};
use jobc_sys::write_atomic::{Durability, write_atomic};

use crate::args::FormatArg;
use crate::runtime::args::gpu::CdiArgs;
use crate::runtime::commands::jobs::Result;
use crate::terminal;

pub(crate) fn run(args: &CdiArgs) -> Result<ExitCode> {
    let machine = Host::here();
    let inventory = Inventory::discover(&machine);
    let vendor = match args.vendor {
        Some(vendor) => vendor.into(),
        None => inventory.gpus.first().map_or(Vendor::Nvidia, |gpu| gpu.vendor),
    };
    let files = DriverFiles::of(&machine, &inventory);
    let capabilities = &[DriverCapability::All];
    let source = Source { host: &machine, inventory: &inventory, files: Some(&files), capabilities };
    let spec = source.spec(vendor)?;
    if vendor == Vendor::Nvidia && !files.has_cuda() {
        let message = format!(
            "jobc: no NVIDIA driver libraries below `{}`; containers get only the devices\n",
            machine.root().display()
        );
        terminal::eprint(&message);
    }
    let value = serde_json::to_value(&spec)
        .map_err(|error| Error::new(Kind::System, format!("cannot write the CDI specification: {error}")))?;
    let is_json = args.output.as_ref().is_some_and(|path| path.extension().is_some_and(|end| end == "json"));
    let text = if is_json || args.format == FormatArg::Json {
        jobc_compiler::emit::to_json(&value)
    } else {
        jobc_compiler::emit::to_yaml(&value)
    };
    match &args.output {
        None => terminal::print(&text),
        Some(path) => write(path, &text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the file atomically, since engines watch these directories.
fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |error: &std::io::Error| {
        Error::new(Kind::System, format!("cannot write `{}`: {error}", path.display()))
    };
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(|error| failed(&error))?;
    }
    // Engines ignore the name of the temporary file.
    Ok(write_atomic(path, text.as_bytes(), 0o666, Durability::Disk).map_err(|error| failed(&error))?)
}
