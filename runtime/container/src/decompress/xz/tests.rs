use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;

fn packed(arguments: &[&str], content: &[u8]) -> Option<Vec<u8>> {
    let child = Command::new("xz").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        jobc_test_skip::skip("xz");
        return None;
    };
    let mut input = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(content).expect("written"));
        child.wait_with_output().expect("an end")
    });
    assert!(output.status.success());
    Some(output.stdout)
}

fn read(bytes: &[u8], budget: &MemoryBudget) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    Streams::new(bytes, budget)?.read_to_end(&mut all).map(|_| all)
}

#[test]
fn a_dictionary_that_takes_more_memory_than_there_is_is_refused() {
    let (budget, content) = (MemoryBudget::new(1 << 20), b"text".repeat(1 << 10));
    let of = |size: &str| packed(&[&format!("--lzma2=dict={size}")], &content);
    let (Some(enough), Some(more)) = (of("1MiB"), of("2MiB")) else { return };
    assert!(read(&enough, &budget).expect("as much as there is") == content);
    for wrong in [more.clone(), [enough, more].concat()] {
        let error = read(&wrong, &budget).expect_err("twice as much");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("its xz dictionary is larger than 1 MiB"), "{error}");
    }
    assert_eq!(budget.take(1 << 20).bytes(), 1 << 20, "all was given back");
}

#[test]
fn the_dictionary_is_found_behind_other_filters_and_sizes() {
    for (arguments, expected) in [
        (&["-0"][..], 256 << 10),
        (&["-9", "-T2"], 64 << 20),
        (&["--x86", "--lzma2=dict=3MiB"], 3 << 20),
        (&["--delta=dist=2", "--x86", "--lzma2=dict=4KiB"], 4 << 10),
    ] {
        let Some(packed) = packed(arguments, &b"text".repeat(9)) else { return };
        assert_eq!(header(&mut &packed[..]).expect("a header").1, expected, "{arguments:?}");
        assert!(read(&packed, &MemoryBudget::new(64 << 20)).expect("read") == b"text".repeat(9));
    }
}

#[test]
fn streams_of_different_dictionaries_with_zeros_between_them() {
    let content = b"text".repeat(1 << 16);
    let (Some(small), Some(large)) = (packed(&["-0"], &content), packed(&["-6"], &content)) else { return };
    let budget = MemoryBudget::new(64 << 20);
    let all = [&small[..], &[0; 8], &large, &small, &[0; 4]].concat();
    assert!(read(&all, &budget).expect("read") == content.repeat(3));
    for (wrong, words) in [
        (&[&small[..], &[0; 3]].concat(), "bytes behind the end of a stream"),
        (&[&small[..], b"rubbish, more than a header"].concat(), "bytes behind the end of a stream"),
        (&[&small[..], &large[..20]].concat(), "incomplete xz stream"),
    ] {
        let error = read(wrong, &budget).expect_err("damaged");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn every_truncation_is_one_and_no_changed_bit_goes_unseen() {
    let content = b"more than one text".repeat(20);
    let Some(packed) = packed(&["-0", "--check=sha256"], &content) else { return };
    let budget = MemoryBudget::new(64 << 20);
    for end in 6..packed.len() {
        let error = read(&packed[..end], &budget).expect_err("truncated");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "after {end} bytes: {error}");
    }
    for at in 0..packed.len() {
        let mut changed = packed.clone();
        changed[at] ^= 1;
        let result = read(&changed, &budget);
        // The numbers of the index are not compared with the blocks.
        assert!(result.is_err() || result.is_ok_and(|read| read == content), "bit 0 of byte {at}");
    }
}
