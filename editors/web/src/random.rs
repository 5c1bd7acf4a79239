//! Seeds of hash maps, on a platform without a random number generator.
//!
//! `jsonschema` hashes with seeds of the crate `getrandom`, which asks the browser through wasm-bindgen unless a program
//! defines this function. Fixed seeds do here: who could choose colliding keys is who waits for the result.

use getrandom::Error;

/// Fills memory with the bytes of a fixed sequence.
// SAFETY: the name and the signature are those that getrandom documents for its backend `custom`.
#[allow(clippy::unnecessary_wraps, reason = "the type is that of getrandom")]
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(destination: *mut u8, length: usize) -> Result<(), Error> {
    // SAFETY: getrandom passes memory of this length that is writable and that nothing else uses. It may not be
    // initialized, so it is only written.
    for at in 0..length {
        let byte = at.wrapping_mul(0x9e).wrapping_add(0x37).to_le_bytes()[0];
        unsafe { destination.add(at).write(byte) };
    }
    Ok(())
}
