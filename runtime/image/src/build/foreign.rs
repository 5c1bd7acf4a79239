//! Commands of another architecture than this host's, which an emulator runs that is registered with the kernel
//! (Documentation/admin-guide/binfmt-misc.rst).

use std::fs;
use std::path::Path;

use crate::platform::Platform;
use jobc_sys::error::{Error, Kind, Result};

/// Where the kernel lists the registered interpreters.
const REGISTERED: &str = "/proc/sys/fs/binfmt_misc";

/// Refuses to run commands of an image that neither this host nor a registered emulator can run.
pub(super) fn require_emulator(platform: &Platform) -> Result<()> {
    require(platform, &Platform::here(), Path::new(REGISTERED))
}

fn require(platform: &Platform, here: &Platform, registered: &Path) -> Result<()> {
    let architecture = platform.architecture.as_str();
    // A 64-bit processor runs the programs of its 32-bit predecessor.
    let native = matches!((here.architecture.as_str(), architecture), ("amd64", "386") | ("arm64", "arm"));
    if architecture.is_empty() || architecture == here.architecture || native {
        return Ok(());
    }
    let interpreter = format!("qemu-{}", machine(architecture));
    let text = fs::read_to_string(registered.join(&interpreter)).unwrap_or_default();
    if text.lines().any(|line| line == "enabled") {
        return Ok(());
    }
    let message =
        format!("this host cannot run commands for `{platform}`: no emulator `{interpreter}` is registered");
    Err(Error::new(Kind::Unenforceable, message)
        .help("install it (Debian: `apt install qemu-user-static binfmt-support`), or build on such a host"))
}

/// QEMU's name of an architecture.
fn machine(architecture: &str) -> &str {
    match architecture {
        "amd64" => "x86_64",
        "386" => "i386",
        "arm64" => "aarch64",
        "mips64le" => "mips64el",
        "mipsle" => "mipsel",
        "loong64" => "loongarch64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_architecture_needs_an_emulator() {
        let directory = tempfile::tempdir().unwrap();
        let check = |platform: &str, here: &str| {
            require(&platform.parse().unwrap(), &here.parse().unwrap(), directory.path())
        };
        check("linux/amd64", "linux/amd64").unwrap();
        check("linux/386", "linux/amd64").unwrap();
        check("linux/arm/v7", "linux/arm64").unwrap();
        let error = check("linux/arm64", "linux/amd64").unwrap_err();
        assert!(error.message().contains("no emulator `qemu-aarch64` is registered"), "{}", error.message());
        assert!(error.advice().unwrap().contains("qemu-user-static"));
        fs::write(directory.path().join("qemu-aarch64"), "disabled\ninterpreter /x\n").unwrap();
        check("linux/arm64", "linux/amd64").unwrap_err();
        fs::write(directory.path().join("qemu-aarch64"), "enabled\ninterpreter /x\nflags: F\n").unwrap();
        check("linux/arm64", "linux/amd64").unwrap();
    }
}
