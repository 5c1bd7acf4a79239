//! The `jobc-oci` binary: what podman and containerd are given as their runtime.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    jobc_oci::main(std::env::args_os()).into()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("jobc-oci: containers need Linux");
    jobc_oci::OWN_FAILURE.into()
}
