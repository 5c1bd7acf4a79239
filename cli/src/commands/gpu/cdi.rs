//! `jobc gpu cdi`: a file that tells other engines of this machine's GPUs.

use std::path::Path;
use std::process::ExitCode;

use jobc_gpu::cdi::generate::{DriverFiles, Source};
use jobc_gpu::{Inventory, Machine};
use jobc_schema::gpu::{DriverCapability, Vendor};
use jobc_sys::error::{Error, Kind};
use jobc_sys::write_atomic::{Durability, write_atomic};

use crate::args::FormatArg;
use crate::args::gpu::CdiArgs;
use crate::commands::jobs::Result;
use crate::terminal;

pub(crate) fn run(args: &CdiArgs) -> Result<ExitCode> {
    let machine = Machine::here();
    let inventory = Inventory::take(&machine);
    let vendor = match args.vendor {
        Some(vendor) => vendor.into(),
        None => inventory.gpus.first().map_or(Vendor::Nvidia, |gpu| gpu.vendor),
    };
    let files = DriverFiles::of(&machine, &inventory);
    let capabilities = &[DriverCapability::All];
    let source = Source { machine: &machine, inventory: &inventory, files: Some(&files), capabilities };
    let spec = source.spec(vendor)?;
    if vendor == Vendor::Nvidia && !files.has_cuda() {
        let message = format!(
            "jobc: no libraries of NVIDIA's driver below `{}`: containers get the devices alone\n",
            machine.root().display()
        );
        terminal::eprint(&message);
    }
    let value = serde_json::to_value(&spec)
        .map_err(|error| Error::new(Kind::Machine, format!("the description cannot be written: {error}")))?;
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

/// Writes the file whole: engines watch these folders.
fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |error: &std::io::Error| {
        Error::new(Kind::Machine, format!("cannot write `{}`: {error}", path.display()))
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    }
    // Its temporary file has a name that no engine takes for a description.
    Ok(write_atomic(path, text.as_bytes(), 0o666, Durability::Disk).map_err(|error| failed(&error))?)
}
