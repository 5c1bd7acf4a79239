//! The findings about a configuration, and the checks that many fields share.

use std::path::Path;

use rustix::param::page_size;

use jobc_sys::error::{Error, Kind};

/// The findings.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Error>);

impl Findings {
    /// A value that is not allowed, at its place.
    pub(super) fn error(&mut self, place: impl Into<String>, message: impl Into<String>, help: &str) {
        self.0.push(Error::new(Kind::Config, message).at(place).help(help));
    }

    /// The error of a function that makes the kernel's terms of a value.
    pub(super) fn push_result<T>(&mut self, result: Result<T, Error>) {
        self.0.extend(result.err());
    }

    /// A path inside the container: absolute.
    pub(super) fn check_container_path(&mut self, place: impl Into<String>, path: &Path) {
        if !path.is_absolute() {
            let message = format!("`{}` is not an absolute path", path.display());
            self.error(place, message, "write a path inside the container, from `/` on");
        }
    }

    /// A text that becomes a C string.
    pub(super) fn check_text(&mut self, place: impl Into<String>, text: &str) {
        if text.contains('\0') {
            self.error(place, "the text contains a NUL character", "remove `\\u0000`");
        }
    }

    /// A text that becomes a C string of the program's: an argument, or a variable.
    pub(super) fn check_argument(&mut self, place: impl Into<String>, text: &str, what: &str) {
        let place = place.into();
        if let Some(longest) = too_long(text) {
            let message = format!("{what} of {} bytes, but the kernel allows at most {longest}", text.len());
            self.error(&place, message, "write it to a file that the program reads");
        }
        self.check_text(place, text);
    }

    /// Variables of an environment.
    pub(super) fn check_environment(&mut self, place: &str, variables: &[String]) {
        for (index, variable) in variables.iter().enumerate() {
            let place = format!("{place}/{index}");
            if variable.find('=').is_none_or(|at| at == 0) {
                let message = format!("`{variable}` is not an environment variable");
                self.error(place, message, "write `NAME=value`");
            } else {
                self.check_argument(place, variable, "a variable");
            }
        }
    }
}

/// Maximum size of one argument or variable of a program, in bytes: 32 pages with the NUL at its end (execve(2),
/// `MAX_ARG_STRLEN`). A page has 4 KiB or more.
fn too_long(text: &str) -> Option<usize> {
    const MIN_PAGE_SIZE: usize = 4096;
    if text.len() < 32 * MIN_PAGE_SIZE {
        return None;
    }
    let longest = 32 * page_size() - 1;
    (text.len() > longest).then_some(longest)
}
