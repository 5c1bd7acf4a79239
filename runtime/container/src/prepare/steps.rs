//! The list that steps are put on, and the strings that they need.

use std::ffi::CString;

use crate::operation::{Operation, Step};
use jobc_sys::error::{Error, Kind, Result};

/// The steps while they are listed.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) list: Vec<Step>,
    /// Warnings about them.
    pub(super) warnings: Vec<String>,
}

impl Steps {
    /// A step that is always made.
    pub(super) fn push(&mut self, operation: Operation) {
        self.list.push(Step { operation, pointer: None });
    }

    /// A warning about a field of config.json that is not refused.
    pub(super) fn warn(&mut self, place: &str, text: impl std::fmt::Display) {
        self.warnings.push(format!("config.json: {place}: {text}"));
    }

    /// A step that a field of config.json asks for.
    pub(super) fn push_at(&mut self, place: impl Into<String>, operation: Operation) {
        self.list.push(Step { operation, pointer: Some(place.into()) });
    }
}

/// A C string from config.json, which must not hold a NUL byte.
pub(super) fn c_string(text: impl Into<Vec<u8>>, place: &str) -> Result<CString> {
    CString::new(text).map_err(|_| {
        Error::new(Kind::Config, "a NUL byte is not allowed here").at(place).help("remove `\\u0000`")
    })
}
