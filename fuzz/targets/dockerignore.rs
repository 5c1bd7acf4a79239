//! A .dockerignore file, and paths that it is asked about: the lines after an empty one.
#![no_main]
use std::path::Path;

use jobc_dockerfile::ignore::Ignore;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (patterns, paths) = text.split_once("\n\n").unwrap_or((text, "src/main.rs\na/b/c\n*"));
    let Ok(ignore) = Ignore::read(patterns) else { return };
    for path in paths.lines().take(50) {
        let _ = (ignore.excludes(Path::new(path)), ignore.enters(Path::new(path)));
    }
});
