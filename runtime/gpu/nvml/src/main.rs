//! `jobc-nvml [--watch] FILE…`: prints as JSON what NVIDIA's library, one of these files, reports about the host's
//! cards.
//!
//! Only `jobc` uses it; `jobc` searches its own directory and ../libexec/jobc for it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if words.is_empty() {
        eprintln!(
            "jobc-nvml: this program is a helper of `jobc`, which starts it from its own directory; see `jobc gpu ls`"
        );
        return ExitCode::from(2);
    }
    jobc_nvml::run_query_process(words)
}
