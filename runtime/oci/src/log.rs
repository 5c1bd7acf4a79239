//! The messages of `jobc oci`: to users on standard error, and to the file that `--log` names.
//!
//! Callers of a runtime read that file to report why a container did not start. Its lines have the format of
//! runc, which callers parse: conmon and podman look for `"level":"error"` and show `msg`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::SystemTime;

use jobc_container::oci_state::rfc3339;
use jobc_sys::error::{Error, Result};

use crate::args::LogFormat;
use crate::message;

#[derive(Debug)]
pub(crate) struct Log {
    file: Option<File>,
    format: LogFormat,
    debug: bool,
}

impl Log {
    /// Opens the file, at whose end lines are added.
    pub(crate) fn open(path: Option<&Path>, format: LogFormat, debug: bool) -> Result<Self> {
        let open = |path: &Path| {
            File::options().append(true).create(true).open(path).map_err(|error| {
                let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
                Error::system(format!("open the log `{}`", path.display()), errno)
            })
        };
        Ok(Self { file: path.map(open).transpose()?, format, debug })
    }

    pub(crate) fn error(&mut self, error: &Error) {
        jobc_terminal::eprint(&message::error(error));
        self.write("error", &error.hints.iter().fold(error.to_string(), |text, hint| text + "; " + hint));
    }

    pub(crate) fn warn(&mut self, text: &str) {
        jobc_terminal::eprint(&message::warning(text));
        self.write("warning", text);
    }

    /// Messages only with `--debug`: on standard error without a log file.
    pub(crate) fn debug(&mut self, text: &str) {
        if self.debug && self.file.is_none() {
            jobc_terminal::eprint(&format!("debug: {text}\n"));
        } else if self.debug {
            self.write("debug", text);
        }
    }

    fn write(&mut self, level: &str, text: &str) {
        let Some(file) = &mut self.file else { return };
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs());
        let line = line(self.format, level, text, &rfc3339(now));
        // One write a line, since several commands may have the file open. A full disk must not hide the error itself,
        // which standard error has had.
        let _ = file.write_all(line.as_bytes());
    }
}

fn line(format: LogFormat, level: &str, text: &str, time: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (level, text, time) = (quoted(level), quoted(text), quoted(time));
    match format {
        LogFormat::Json => format!("{{\"level\":{level},\"msg\":{text},\"time\":{time}}}\n"),
        LogFormat::Text => format!("time={time} level={} msg={text}\n", level.trim_matches('"')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_it_says() {
        let time = "2026-11-21T13:31:53Z";
        let text = "cannot open `a\"b\n`: no such file or directory (ENOENT)";
        assert_eq!(
            line(LogFormat::Json, "error", text, time),
            r#"{"level":"error","msg":"cannot open `a\"b\n`: no such file or directory (ENOENT)","time":"2026-11-21T13:31:53Z"}"#
                .to_owned()
                + "\n"
        );
        assert_eq!(
            line(LogFormat::Text, "warning", text, time),
            r#"time="2026-11-21T13:31:53Z" level=warning msg="cannot open `a\"b\n`: no such file or directory (ENOENT)""#
                .to_owned()
                + "\n"
        );
    }
}
