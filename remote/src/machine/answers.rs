//! The answers of `jobc` on the host.

use jobc_sys::error::{Error, Kind, Result};
use serde::de::DeserializeOwned;

use crate::host::Output;

/// The output of a command that succeeded.
///
/// # Errors
///
/// It failed; its own error is returned.
pub(super) fn succeeded(host: &str, output: Output) -> Result<Output> {
    if output.status == 0 { Ok(output) } else { Err(error_of(host, &output)) }
}

/// The JSON that a command printed.
pub(super) fn json<T: DeserializeOwned>(host: &str, output: Output) -> Result<T> {
    let output = succeeded(host, output)?;
    parse(host, &output.stdout)
}

/// Reads JSON of the host.
pub(super) fn parse<T: DeserializeOwned>(host: &str, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| {
        Error::new(Kind::System, format!("`jobc` on `{host}` printed something unexpected: {error}"))
            .help("is it another version? `ssh.jobc: auto` copies this one there")
    })
}

/// The error that `jobc` printed: `error: MESSAGE` with ` = help: ADVICE` below it.
pub(super) fn error_of(host: &str, output: &Output) -> Error {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let clean = |text: &str| text.chars().filter(|c| !c.is_control()).take(1000).collect::<String>();
    let message = text.lines().find_map(|line| line.strip_prefix("error: ")).map(clean);
    let hints = text.lines().filter_map(|line| line.trim_start().strip_prefix("= help: ")).map(clean);
    let message = message.unwrap_or_else(|| match clean(&output.reason()) {
        line if line.is_empty() => format!("exit code {}", output.status),
        line => line,
    });
    let kind = if output.status == 2 { Kind::NotFound } else { Kind::System };
    hints.fold(Error::new(kind, format!("`{host}`: {message}")), Error::help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_errors_are_reported_unchanged() {
        let stderr =
            b"warning: x\nerror: there is no job `nope`\n = help: `jobc ps --all` lists the jobs\n".to_vec();
        let error = succeeded("box", Output { status: 2, stdout: vec![], stderr }).unwrap_err();
        assert_eq!(error.message(), "`box`: there is no job `nope`");
        assert_eq!(error.advice().as_deref(), Some("`jobc ps --all` lists the jobs"));
        assert_eq!(error.kind, Kind::NotFound);
        let output = Output { status: 125, stdout: vec![], stderr: b"sh: 1: oops\n".to_vec() };
        assert_eq!(error_of("box", &output).message(), "`box`: sh: 1: oops");
        assert_eq!(
            error_of("box", &Output { status: 3, ..Output::default() }).message(),
            "`box`: exit code 3"
        );
        assert!(json::<u32>("box", Output { stdout: b"no".to_vec(), ..Output::default() }).is_err());
    }
}
