//! What differs between platforms, other than whether they have the [`runtime`](crate::runtime): modes of files, the
//! exchange of two directories, directories of the user, the allocator.

pub(crate) mod directories;
#[cfg(unix)]
#[path = "platform/unix.rs"]
pub(crate) mod files;
#[cfg(not(unix))]
#[path = "platform/windows.rs"]
pub(crate) mod files;

/// Whether this build has the commands about jobs.
pub(crate) const RUNS_JOBS: bool = cfg!(all(target_os = "linux", feature = "runtime"));

/// The OpenAPI document of the REST API; `None` in a build without it.
pub(crate) fn openapi_document() -> Option<String> {
    #[cfg(all(target_os = "linux", feature = "serve"))]
    let document = Some(format!("{:#}\n", jobc_serve::openapi_document()));
    #[cfg(not(all(target_os = "linux", feature = "serve")))]
    let document = None;
    document
}

/// A job of 10,000 roles allocates some ten million small values. mimalloc needs three quarters of the time of Linux's C
/// libraries for them. Elsewhere it would be the only C in the program.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
