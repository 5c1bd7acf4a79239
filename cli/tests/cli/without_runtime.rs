//! The program for macOS and Windows, which Linux has without the feature `runtime`: `tests/install/platforms.py` runs these.
#![cfg(not(all(target_os = "linux", feature = "runtime")))]

use crate::directory::{Directory, HELLO};

#[test]
fn commands_of_the_runtime_say_what_to_use_instead() {
    let directory = Directory::with_job(HELLO);
    for words in
        [&["run"][..], &["run", "--help"], &["image", "build", "."], &["ps"], &["doctor"], &["oci", "list"]]
    {
        let run = directory.jobc(words).exits(2);
        assert!(run.err.contains(&format!("`jobc {}`", words[0])), "{}", run.err);
        assert!(run.err.contains("help"), "{}", run.err);
        assert_eq!(run.out, "");
    }
    assert!(directory.jobc(&["run"]).exits(2).err.contains("jobc build --target kubernetes"));
}

#[test]
fn help_pages_and_completions_have_what_is_there() {
    let directory = Directory::with_job(HELLO);
    for words in [&["--help"][..], &["completions", "bash"], &["completions", "zsh"], &["man"]] {
        let text = directory.jobc(words).exits(0).out;
        assert!(text.contains("check") && text.contains("lsp"), "{words:?}: {text}");
        assert!(!text.contains("pause") && !text.contains("doctor"), "{words:?}: {text}");
    }
    let error = directory.jobc(&["chekc"]).exits(2).err;
    assert!(error.contains("'check'"), "{error}");
}
