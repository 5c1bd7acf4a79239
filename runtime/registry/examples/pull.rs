//! Pulls and unpacks an image, for the benchmark `tests/bench/images/pull_unpack.py`.
//!
//! ```text
//! pull STORE REFERENCE [--whole]     pulls by plain HTTP and unpacks while layers come; with --whole afterwards
//! ```
//!
//! It prints the directories, lowest first, and `peak KIB`: the most memory that this process has had.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use jobc_image::progress::ignore_progress;
use jobc_image::{Platform, Reference, Store, unpack};
use jobc_registry::{Client, Credentials, Settings};
use jobc_sys::error::Result;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == unpack::COMMAND).is_some() {
        return unpack::become_worker(words);
    }
    let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [store, reference] => pull(store, reference, true),
        [store, reference, "--whole"] => pull(store, reference, false),
        _ => {
            eprintln!("usage: pull STORE REFERENCE [--whole]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn pull(store: &str, reference: &str, while_it_comes: bool) -> Result<()> {
    let (store, reference) = (Store::open(Path::new(store))?, reference.parse::<Reference>()?);
    let client = Client::new(Settings { plain_http: true, ..Settings::default() }, Credentials::of_user());
    let (here, stopped) = (Platform::here(), AtomicBool::new(false));
    let descriptor = if while_it_comes {
        client.pull_unpacked(&store, &reference, &here, &ignore_progress, &stopped)?
    } else {
        client.pull(&store, &reference, &here, &ignore_progress)?
    };
    let image = store.image(&descriptor, &here)?;
    for directory in unpack::layers(&store, &image, &ignore_progress, &stopped)? {
        println!("{}", directory.display());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    println!("peak {}", peak.trim().trim_end_matches(" kB"));
    Ok(())
}
