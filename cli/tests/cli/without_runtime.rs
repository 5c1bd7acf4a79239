//! The program for macOS and Windows, which Linux has without the feature `runtime`: `tests/platforms` runs these.
#![cfg(not(all(target_os = "linux", feature = "runtime")))]

use crate::directory::{Directory, HELLO, Run};

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
    let complete = || {
        let mut command = directory.command(crate::directory::binary());
        command.args(["--", "jobc", ""]).env("JOBC_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "1");
        command.env("_CLAP_IFS", "\n");
        Run::of(&mut command).exits(0).out
    };
    let pages = [&["--help"][..], &["man"]].map(|words| directory.jobc(words).exits(0).out);
    for text in pages.into_iter().chain([complete()]) {
        assert!(text.contains("check") && text.contains("lsp"), "{text}");
        assert!(!text.contains("pause") && !text.contains("doctor"), "{text}");
    }
    let error = directory.jobc(&["chekc"]).exits(2).err;
    assert!(error.contains("'check'"), "{error}");
}
