//! `fake-gpus NAME DIRECTORY [--no-nvml] [--nodes real|null|files]`: writes a simulated host with GPUs.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use jobc_fake_gpus::model::{NAMES, named};
use jobc_fake_gpus::{Nodes, nvml, write_host};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fake-gpus: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let (mut words, mut nodes, mut with_nvml) = (vec![], Nodes::Real, true);
    let mut arguments = std::env::args().skip(1);
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--no-nvml" => with_nvml = false,
            "--nodes" => {
                nodes = match arguments.next().as_deref() {
                    Some("real") => Nodes::Real,
                    Some("null") => Nodes::Null,
                    Some("files") => Nodes::Files,
                    _ => return Err("`--nodes` takes `real`, `null` or `files`".to_owned()),
                }
            }
            _ => words.push(word),
        }
    }
    let [name, directory] = &words[..] else {
        return Err(format!("give the machine, one of {}, and a directory", NAMES.join(", ")));
    };
    let machine = named(name).ok_or_else(|| format!("`{name}` is none of {}", NAMES.join(", ")))?;
    let directory = PathBuf::from(directory);
    let failed = |error: std::io::Error| format!("cannot write `{}`: {error}", directory.display());
    write_host(&machine, &directory, nodes).map_err(failed)?;
    if with_nvml && !machine.nvidia.is_empty() {
        nvml::build(&directory).map_err(failed)?;
    }
    Ok(())
}
