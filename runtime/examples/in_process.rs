//! Starts containers from inside a process that is already running, as a supervisor does, and says how long it takes.
//!
//! ```text
//! in_process BUNDLE STATES ROUNDS [--gang N] [--heap MIB]
//! ```
//!
//! A round starts N containers of the bundle (1 unless given) from one thread, waits for all and deletes them; the heap is
//! memory that this process holds and has written to meanwhile. Prints a line of JSON: the milliseconds of each round up to
//! the last container's start, and up to its end. `tests/bench/start` calls this; the bundle must name no `cgroupsPath`,
//! so that each container has a group of its own.

use std::path::Path;
use std::time::Instant;

use jobc_runtime::bundle::Bundle;
use jobc_runtime::container::make::{self, Request, Then};
use jobc_runtime::state::Id;
use jobc_runtime::state::store::Store;
use jobc_runtime::{Error, Result};

/// What was asked for on the command line.
struct Asked {
    bundle: String,
    states: String,
    rounds: usize,
    gang: usize,
    heap: usize,
}

fn asked() -> Option<Asked> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        words
            .iter()
            .position(|word| word == name)
            .and_then(|at| words.get(at + 1))
            .and_then(|word| word.parse().ok())
    };
    Some(Asked {
        bundle: words.first()?.clone(),
        states: words.get(1)?.clone(),
        rounds: words.get(2)?.parse().ok()?,
        gang: option("--gang").unwrap_or(1),
        heap: option("--heap").unwrap_or(0) << 20,
    })
}

fn main() {
    let Some(asked) = asked() else {
        eprintln!("usage: in_process BUNDLE STATES ROUNDS [--gang N] [--heap MIB]");
        std::process::exit(2);
    };
    // Every page is written to, so that it is memory and not a promise.
    let mut heap = vec![0u8; asked.heap];
    for page in heap.chunks_mut(4096) {
        page[0] = 1;
    }
    match measure(&asked) {
        Ok(rounds) => {
            let started: Vec<f64> = rounds.iter().map(|round| round.0).collect();
            let ended: Vec<f64> = rounds.iter().map(|round| round.1).collect();
            println!("{}", serde_json::json!({"started_ms": started, "ended_ms": ended}));
        }
        Err(error) => {
            eprintln!("in_process: {error}");
            std::process::exit(1);
        }
    }
    std::hint::black_box(&heap);
}

fn measure(asked: &Asked) -> Result<Vec<(f64, f64)>> {
    let store = Store::new(&asked.states);
    let bundle = Bundle::open(Path::new(&asked.bundle))?;
    let mut rounds = Vec::with_capacity(asked.rounds);
    // One more than asked for: the first is to warm up.
    for round in 0..=asked.rounds {
        let begun = Instant::now();
        let mut gang = Vec::with_capacity(asked.gang);
        for member in 0..asked.gang {
            let id = Id::new(&format!("in-process-{}-{round}-{member}", std::process::id()))?;
            gang.push(make::begin(&store, &id)?.make(&bundle, Request::default(), Then::Attend, None)?);
        }
        let started = begun.elapsed();
        for made in gang {
            let code = made.process.wait()?.code();
            if code != 0 {
                return Err(Error::new(
                    jobc_runtime::error::Kind::State,
                    format!("a container ended with {code}"),
                ));
            }
            made.container.delete(true)?;
        }
        if round > 0 {
            rounds.push((started.as_secs_f64() * 1000.0, begun.elapsed().as_secs_f64() * 1000.0));
        }
    }
    Ok(rounds)
}
