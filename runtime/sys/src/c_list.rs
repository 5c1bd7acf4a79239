//! Lists of C strings as execve(2) takes them.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char};

/// C strings and the array of pointers to them, ended by a null pointer. Its `Debug` shows none: there may be secrets.
pub struct CList {
    texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers lead to the heap blocks of `texts`, which move with the list and are never changed.
unsafe impl Send for CList {}
// SAFETY: nothing is changed through a shared reference.
unsafe impl Sync for CList {}

impl std::fmt::Debug for CList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CList").field("length", &self.texts.len()).finish_non_exhaustive()
    }
}

impl CList {
    /// A list of these strings.
    pub fn new(texts: Vec<CString>) -> Self {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Self { texts, pointers }
    }

    /// The first string, such as a program's name.
    pub fn first(&self) -> Option<&CString> {
        self.texts.first()
    }

    /// The strings.
    pub fn texts(&self) -> &[CString] {
        &self.texts
    }

    /// The address of the array.
    pub fn address(&self) -> usize {
        self.pointers.as_ptr() as usize
    }
}
