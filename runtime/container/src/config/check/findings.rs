//! What is found wrong with a configuration, and the checks that many fields share.

use std::path::Path;

use rustix::param::page_size;

use jobc_sys::error::{Error, Kind};

/// What was found wrong.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Error>);

impl Findings {
    /// A value that is not allowed, at its place.
    pub(super) fn wrong(&mut self, place: impl Into<String>, message: impl Into<String>, help: &str) {
        self.0.push(Error::new(Kind::Config, message).at(place).help(help));
    }

    /// The error of a function that makes the kernel's terms of a value.
    pub(super) fn take<T>(&mut self, result: Result<T, Error>) {
        self.0.extend(result.err());
    }

    /// A path inside the container: absolute.
    pub(super) fn inside(&mut self, place: impl Into<String>, path: &Path) {
        if !path.is_absolute() {
            let message = format!("`{}` is not an absolute path", path.display());
            self.wrong(place, message, "write a path inside the container, from `/` on");
        }
    }

    /// A text that becomes a C string.
    pub(super) fn text(&mut self, place: impl Into<String>, text: &str) {
        if text.contains('\0') {
            self.wrong(place, "the text contains a NUL character", "remove `\\u0000`");
        }
    }

    /// A text that becomes a C string of the program's: an argument, or a variable.
    pub(super) fn argument(&mut self, place: impl Into<String>, text: &str, what: &str) {
        let place = place.into();
        if let Some(longest) = too_long(text) {
            let message = format!("{what} of {} bytes, but the kernel allows at most {longest}", text.len());
            self.wrong(&place, message, "write it to a file that the program reads");
        }
        self.text(place, text);
    }

    /// Variables of an environment.
    pub(super) fn environment(&mut self, place: &str, variables: &[String]) {
        for (index, variable) in variables.iter().enumerate() {
            let place = format!("{place}/{index}");
            if variable.find('=').is_none_or(|at| at == 0) {
                let message = format!("`{variable}` is not an environment variable");
                self.wrong(place, message, "write `NAME=value`");
            } else {
                self.argument(place, variable, "a variable");
            }
        }
    }
}

/// The most bytes of one string of a program's, where a text has more: 32 pages with the NUL at its end (execve(2),
/// `MAX_ARG_STRLEN`). A page has 4 KiB or more.
fn too_long(text: &str) -> Option<usize> {
    const SMALLEST: usize = 4096;
    if text.len() < 32 * SMALLEST {
        return None;
    }
    let longest = 32 * page_size() - 1;
    (text.len() > longest).then_some(longest)
}
