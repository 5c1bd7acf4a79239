//! `jobc gpu cdi`: writes a CDI file of this host's GPUs for other engines.

use std::process::ExitCode;

use jobc_gpu::cdi::generate::{DriverFiles, Source};
use jobc_gpu::{Host, Inventory};
use jobc_schema::gpu::{DriverCapability, Vendor};
use jobc_sys::error::{Error, Kind};

use crate::args::FormatArg;
use crate::runtime::args::gpu::CdiArgs;
use crate::runtime::commands::jobs::Result;
use crate::runtime::output::write_file;
use crate::terminal;

pub(crate) fn run(args: &CdiArgs) -> Result<ExitCode> {
    let machine = Host::here();
    let inventory = Inventory::discover(&machine);
    let first = || inventory.gpus.first().map_or(Vendor::Nvidia, |gpu| gpu.vendor);
    let vendor = args.vendor.unwrap_or_else(first);
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
        // Engines watch these directories, and ignore the name of the temporary file.
        Some(path) => write_file(path, &text)?,
    }
    Ok(ExitCode::SUCCESS)
}
