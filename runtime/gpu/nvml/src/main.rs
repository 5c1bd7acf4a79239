//! `jobc-nvml [--watch] FILE…`: says in JSON what NVIDIA's library, one of these files, says of the machine's cards.
//!
//! It is for `jobc` alone, which looks for it beside itself and in ../libexec/jobc.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if words.is_empty() {
        eprintln!(
            "jobc-nvml: this program is for `jobc`, which looks for it beside itself; see `jobc gpu ls`"
        );
        return ExitCode::from(2);
    }
    jobc_nvml::answer(words)
}
