//! The language server of jobc as WebAssembly: for the playground and for VS Code for the Web.
//!
//! A worker (`worker.ts`) drives it with four exports and one import. It writes a text to the address of [`jobc_input`],
//! gives it with [`jobc_receive`] or [`jobc_files`], calls [`jobc_work`], and reads the reply at [`jobc_output`]. The host
//! says what time it is (`host.now`, in milliseconds). After a trap, [`jobc_output`] holds the message of the panic.
#![allow(unsafe_code, reason = "exported names and the host's clock; each is commented")]

mod files;
mod host;
#[cfg(target_family = "wasm")]
mod random;

use std::cell::RefCell;
use std::time::Duration;

use crate::host::Host;

thread_local! {
    static HOST: RefCell<Host> = RefCell::new(Host::new(now));
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(vec![]) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(vec![]) };
}

/// The address of an input buffer of this length.
// SAFETY: no other symbol has this name, as none below: they begin with `jobc_`.
#[unsafe(no_mangle)]
pub extern "C" fn jobc_input(length: usize) -> *mut u8 {
    std::panic::set_hook(Box::new(|panic| OUTPUT.set(panic.to_string().into_bytes())));
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(length, 0);
        input.as_mut_ptr()
    })
}

/// Takes the input: a message of JSON-RPC. Returns 0 if it is none.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn jobc_receive() -> u32 {
    let input = INPUT.take();
    HOST.with_borrow_mut(|host| host.receive(&input)).into()
}

/// Takes the input: files beside the jobs, as `{"/path": "text", ...}`; true for a directory, false for what does not
/// exist. Returns 0 if it is not such an object.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn jobc_files() -> u32 {
    let input = INPUT.take();
    HOST.with_borrow_mut(|host| host.files(&input)).into()
}

/// Handles what was received, and returns the length of the reply (`host::Reply`) at [`jobc_output`].
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn jobc_work() -> usize {
    let reply = HOST.with_borrow_mut(Host::work);
    let length = reply.len();
    OUTPUT.set(reply);
    length
}

/// The address of the last reply; valid until the next call.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn jobc_output() -> *const u8 {
    OUTPUT.with_borrow(Vec::as_ptr)
}

/// The length of what is at [`jobc_output`].
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn jobc_output_length() -> usize {
    OUTPUT.with_borrow(Vec::len)
}

/// WebAssembly without a system has no clock.
#[cfg(target_family = "wasm")]
fn now() -> Duration {
    #[link(wasm_import_module = "host")]
    unsafe extern "C" {
        #[link_name = "now"]
        safe fn milliseconds() -> f64;
    }
    // A time that is not a number would be a fault of the host.
    Duration::try_from_secs_f64(milliseconds() / 1000.0).unwrap_or_default()
}

#[cfg(not(target_family = "wasm"))]
fn now() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
