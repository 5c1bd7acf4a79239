//! Concurrent builds, and readers during builds.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use camino::Utf8Path;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::directory::{Directory, HELLO, binary};

/// A build for every built-in target.
const BUILD: [&str; 7] = ["build", "-t", "local", "-t", "kubernetes", "-t", "openpai"];

#[test]
fn eight_builds_at_once_leave_one_sound_output() {
    let directory = Directory::with_job(HELLO);
    let greetings = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let expected: Vec<_> = greetings
        .iter()
        .map(|greeting| {
            let set = format!("greeting={greeting}");
            directory.jobc(&[&BUILD[..], &["--set", &set, "--set", "count=20"]].concat()).exits(0);
            directory.out()
        })
        .collect();
    for same in [true, false] {
        for _ in 0..2 {
            let children: Vec<_> = greetings
                .iter()
                .map(|greeting| {
                    let set = format!("greeting={}", if same { "a" } else { greeting });
                    let mut command = directory.command(binary());
                    command.args(BUILD).args(["--set", &set, "--set", "count=20"]);
                    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
                })
                .collect();
            for child in children {
                let output = child.wait_with_output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            let now = directory.out();
            // Each target's directory is swapped in by itself, so two targets may come from two builds.
            for target in ["local", "kubernetes", "openpai"] {
                let of = |files: &std::collections::BTreeMap<camino::Utf8PathBuf, Vec<u8>>| -> Vec<_> {
                    let place = Utf8Path::new("hello").join(target);
                    files.clone().into_iter().filter(|(path, _)| path.starts_with(&place)).collect()
                };
                let sound = expected.iter().take(if same { 1 } else { 8 }).any(|files| of(files) == of(&now));
                assert!(sound, "{target} is a mix");
            }
            let hidden: Vec<_> = now.keys().filter(|path| path.as_str().contains("/.")).collect();
            assert!(hidden.is_empty(), "left over: {hidden:?}");
        }
    }
}

/// Reads a file of an opened directory; nothing where it is gone.
fn read_at(directory: &File, name: &str) -> Option<String> {
    let file = openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text).ok()?;
    Some(text)
}

/// How often a reader saw an inconsistent state.
#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    missing: AtomicU64,
    broken: AtomicU64,
    mixed: AtomicU64,
}

/// Reads the output over and over: `plan.json` by its path, and two files of one directory that was opened once.
fn read_on(target: &Utf8Path, over: &AtomicBool, seen: &Counts) {
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    while !over.load(Ordering::Relaxed) {
        count(&seen.reads);
        match std::fs::read_to_string(target.join("plan.json")) {
            Err(_) => drop(count(&seen.missing)),
            Ok(text) => {
                if serde_json::from_str::<serde_json::Value>(&text).is_err() {
                    count(&seen.broken);
                }
            }
        }
        let Ok(directory) = openat(
            CWD,
            target.as_std_path(),
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        ) else {
            count(&seen.missing);
            continue;
        };
        let directory = File::from(directory);
        // A file is gone where the directory was replaced after it was opened; a reader then opens it again.
        let (Some(plan), Some(config)) =
            (read_at(&directory, "plan.json"), read_at(&directory, "oci/main-0/config.json"))
        else {
            continue;
        };
        if plan.contains("first-value") != config.contains("first-value") {
            count(&seen.mixed);
        }
    }
}

/// Builds over and over with two values in turn while two readers look; `JOBC_SWAPS` sets how often.
#[test]
fn a_reader_never_sees_a_missing_or_a_mixed_directory() {
    let swaps: u32 =
        std::env::var("JOBC_SWAPS").map_or(40, |text| text.parse().expect("JOBC_SWAPS is a number"));
    let directory = Directory::with_job(HELLO);
    let build = |value: &str| {
        let set = format!("greeting={value}-value");
        directory.jobc(&["build", "--backend", "oci", "--set", "count=1", "--set", &set]).exits(0)
    };
    build("first");
    let target = directory.path().join("out/hello/local");
    let (over, seen) = (AtomicBool::new(false), Counts::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| read_on(&target, &over, &seen));
        }
        for i in 0..swaps {
            let run = build(if i % 2 == 0 { "second" } else { "first" });
            assert!(!run.out.contains("unchanged"), "{}", run.out);
        }
        over.store(true, Ordering::Relaxed);
    });
    println!("{swaps} swaps: {seen:?}");
    assert!(seen.reads.into_inner() >= u64::from(swaps) / 10, "the readers hardly ran");
    assert_eq!((seen.missing.into_inner(), seen.broken.into_inner(), seen.mixed.into_inner()), (0, 0, 0));
}
