//! The user's terminal in raw mode, in which every key goes to the container as it is.

use std::sync::{Mutex, PoisonError};

use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

/// The terminal's previous settings, for exits that drop nothing.
static SAVED_TERMIOS: Mutex<Option<Termios>> = Mutex::new(None);

/// Standard input's terminal in raw mode (cfmakeraw(3)); given back when dropped.
#[derive(Debug)]
pub struct RawMode(());

impl RawMode {
    /// Enters raw mode; nothing where standard input is not a terminal.
    pub fn enter() -> Option<Self> {
        if !isatty(stdin()) {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        *SAVED_TERMIOS.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        // Saved before it is changed, so that it can always be restored.
        tcsetattr(stdin(), OptionalActions::Flush, &raw).ok()?;
        Some(Self(()))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was, if it is in raw mode; for the hook that runs at a panic.
pub fn restore() {
    // A panic while the lock is held cannot be handled here; `try_lock` does not wait for it.
    let Ok(mut before) = SAVED_TERMIOS.try_lock() else { return };
    if let Some(before) = before.take() {
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &before);
    }
}
