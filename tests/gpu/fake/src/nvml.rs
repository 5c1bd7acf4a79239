//! A library that answers like NVML, from a file.
//!
//! The file is next to the library, or named by `FAKE_NVML`. It has a line `name=answer` for each query. Instead of an
//! answer, `!3` is an error by its number, `~` never answers, `^` crashes.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::model::{FakeHost, Nvidia};

/// The file of the answers in a tree.
pub const ANSWERS: &str = "usr/lib/x86_64-linux-gnu/nvml.answers";

/// The library's source.
const SOURCE: &str = include_str!("nvml.c");

/// Builds the library into a tree, instead of the file of that name; `cc` does it.
pub fn build(root: &Path) -> io::Result<PathBuf> {
    let library = root.join("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
    let target = std::fs::canonicalize(&library).unwrap_or_else(|_| library.clone());
    let source = target.with_file_name("nvml.c");
    std::fs::write(&source, SOURCE)?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args([
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wl,-soname,libnvidia-ml.so.1",
        "-o",
    ]);
    let status = command.arg(&target).arg(&source).arg("-ldl").status()?;
    std::fs::remove_file(source)?;
    if status.success() { Ok(library) } else { Err(io::Error::other(format!("cc ended with {status}"))) }
}

/// The library's answers for a host.
pub fn answers(machine: &FakeHost) -> String {
    let mut out =
        format!("driver={}\ncuda={}\ncount={}\n", machine.driver, machine.cuda, machine.nvidia.len());
    for (number, gpu) in machine.nvidia.iter().enumerate() {
        let mut say = |name: &str, answer: String| out += &format!("gpu.{number}.{name}={answer}\n");
        say("name", gpu.card.name.to_owned());
        say("uuid", Nvidia::uuid(number));
        say("minor", number.to_string());
        say("bus", gpu.card.bus().to_string());
        say("brand", gpu.brand.to_string());
        say("memory", format!("{} {}", gpu.card.memory << 20, 512 << 20));
        say("compute", format!("{} {}", gpu.compute.0, gpu.compute.1));
        say("utilization", "0 0".to_owned());
        say("processes", String::new());
        say("energy", format!("{} {}", 5_000_000, 71_400 + 1000 * number));
        // As of a card at rest: graphics is clock 0, memory clock 2, and no fan.
        for (name, answer) in [
            ("temperature", 34 + number),
            ("power", 71_400),
            ("power_limit", 350_000),
            ("clock.0", 1980),
            ("clock.2", 2619),
            ("ecc", 1),
            ("ecc_errors", 0),
            // Uncorrected errors of the memory (2) and errors of the XID list (8).
            ("event_types", 10),
            ("throttle", 0),
            ("link_errors", 0),
            ("compute_mode", 0),
            ("persistence", 1),
        ] {
            say(name, answer.to_string());
        }
        say("mig", gpu.mig.map_or_else(|| "!3".to_owned(), |enabled| u32::from(enabled).to_string()));
        for (index, (profile, memory, gi)) in gpu.instances.iter().enumerate() {
            let mut of = |name: &str, answer: String| say(&format!("mig.{index}.{name}"), answer);
            of("name", format!("{} MIG {profile}", gpu.card.name));
            of("uuid", Nvidia::mig_uuid(number, index));
            of("memory", format!("{} {}", memory << 20, 12 << 20));
            of("gi", gi.to_string());
            of("ci", "0".to_owned());
        }
        let mut links = vec![];
        for (one, other, count) in &machine.nvlinks {
            let far = [(*one, *other), (*other, *one)].into_iter().find(|(near, _)| *near == number);
            let bus = far.map(|(_, far)| machine.nvidia[far].card.bus());
            links.extend(bus.into_iter().flat_map(|bus| std::iter::repeat_n(bus, *count as usize)));
        }
        // A switch is on a bus where no card is.
        links.extend(std::iter::repeat_n(255, machine.to_switches as usize));
        for (link, bus) in links.iter().enumerate() {
            say(&format!("link.{link}"), bus.to_string());
        }
    }
    out
}
