//! Starts containers from inside a process that is already running, as a supervisor does, and measures how long that
//! takes.
//!
//! ```text
//! in_process BUNDLE STATES ROUNDS [--gang N] [--threads N] [--heap MIB]
//! ```
//!
//! A round starts a gang of containers of the bundle (default 1), waits for all and deletes them. Threads share the
//! work (default 1; a supervisor has one per core, at most four), and the heap is memory that this process holds and
//! has written to meanwhile. Prints a line of JSON: the milliseconds of each round up to the last container's start,
//! and up to its end. `tests/bench/start` calls this; the bundle must not set `cgroupsPath`, so that each container has
//! its own cgroup.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jobc_container::bundle::Bundle;
use jobc_container::container::create::{self, CreateRequest, CreatedContainer, StartMode};
use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_sys::error::{Error, Kind, Result};

/// The options of the command line.
struct Arguments {
    bundle: String,
    states: String,
    rounds: usize,
    gang: usize,
    threads: usize,
    heap: usize,
}

fn parse_arguments() -> Option<Arguments> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        words
            .iter()
            .position(|word| word == name)
            .and_then(|at| words.get(at + 1))
            .and_then(|word| word.parse().ok())
    };
    Some(Arguments {
        bundle: words.first()?.clone(),
        states: words.get(1)?.clone(),
        rounds: words.get(2)?.parse().ok()?,
        gang: option("--gang").unwrap_or(1),
        threads: option("--threads").unwrap_or(1).max(1),
        heap: option("--heap").unwrap_or(0) << 20,
    })
}

fn main() {
    let Some(arguments) = parse_arguments() else {
        eprintln!("usage: in_process BUNDLE STATES ROUNDS [--gang N] [--threads N] [--heap MIB]");
        std::process::exit(2);
    };
    // Writes to every page, so that the memory is really allocated.
    let mut heap = vec![0u8; arguments.heap];
    for page in heap.chunks_mut(4096) {
        page[0] = 1;
    }
    match measure(&arguments) {
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

fn measure(arguments: &Arguments) -> Result<Vec<(f64, f64)>> {
    let store = Store::new(&arguments.states);
    let bundle = Bundle::open(Path::new(&arguments.bundle))?;
    let mut rounds = Vec::with_capacity(arguments.rounds);
    // One more than requested: the first is to warm up.
    for round in 0..=arguments.rounds {
        let milliseconds = measure_round(arguments, &store, &bundle, round)?;
        if round > 0 {
            rounds.push(milliseconds);
        }
    }
    Ok(rounds)
}

/// The milliseconds up to the last start, and up to the last end.
fn measure_round(arguments: &Arguments, store: &Store, bundle: &Bundle, round: usize) -> Result<(f64, f64)> {
    let begun = Instant::now();
    let next = AtomicUsize::new(0);
    let all_started = Barrier::new(arguments.threads);
    // A container ends with the thread that made it, so each thread stays with its own.
    let share = || {
        let made: Result<Vec<CreatedContainer>> =
            std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed))
                .take_while(|member| *member < arguments.gang)
                .map(|member| {
                    let id = Id::new(&format!("in-process-{}-{round}-{member}", std::process::id()))?;
                    create::reserve(store, &id)?.create(
                        bundle,
                        CreateRequest::default(),
                        StartMode::Attach,
                        None,
                    )
                })
                .collect();
        all_started.wait();
        let started = begun.elapsed();
        made?.into_iter().try_for_each(end)?;
        Ok(started)
    };
    let started: Result<Vec<Duration>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..arguments.threads).map(|_| scope.spawn(share)).collect();
        let own = share();
        others.into_iter().map(|other| other.join().expect("no thread panics")).chain([own]).collect()
    });
    let started = started?.into_iter().max().unwrap_or_default();
    Ok((started.as_secs_f64() * 1000.0, begun.elapsed().as_secs_f64() * 1000.0))
}

/// Waits for a container's end and deletes it.
fn end(made: CreatedContainer) -> Result<()> {
    match made.process.wait()?.code() {
        0 => made.container.delete(true).map(drop),
        code => Err(Error::new(Kind::State, format!("a container ended with {code}"))),
    }
}
