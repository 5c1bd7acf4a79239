//! The `jobc-oci` binary: what podman and containerd are given as their runtime.
//!
//! It begins where the C library calls it, not where the standard library would: that spends a twentieth of a
//! container's syscalls on this process's stack and its overflow, which is a crash with either. What counts of the
//! rest is done by [`jobc_oci::open_standard_streams`].
#![cfg_attr(target_os = "linux", no_main)]
#![allow(unsafe_code)] // the name `main` is the C library's to find

#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
extern "C" fn main(_count: std::ffi::c_int, _words: *const *const std::ffi::c_char) -> std::ffi::c_int {
    // The standard library has kept the words for itself before this, from the C library's table of beginnings.
    jobc_oci::open_standard_streams();
    jobc_oci::main(std::env::args_os()).into()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("jobc-oci: containers need Linux");
    std::process::ExitCode::FAILURE
}
