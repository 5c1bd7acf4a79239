use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;

/// More than one piece of a reader, without repetition.
fn content() -> Vec<u8> {
    (0u32..300_000).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

/// The output of a program of this host for some content; without the program the test is skipped.
fn by(program: &str, arguments: &[&str], content: &[u8]) -> Option<Vec<u8>> {
    let child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        jobc_test_skip::skip(program);
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

fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    read_ahead::with_read_ahead(decompressing_reader(bytes)?, |_| {}, |ahead| ahead.read_to_end(&mut all))?;
    Ok(all)
}

fn check(program: &str, arguments: &[&str]) {
    let content = content();
    let Some(packed) = by(program, arguments, &content) else { return };
    assert!(read(&packed).expect("read") == content, "{program}");
    assert!(
        read(&[&packed[..], &packed].concat()).expect("read") == [&content[..], &content].concat(),
        "two in a row"
    );
    for end in [6, 20, packed.len() / 2, packed.len() - 9] {
        let error = read(&packed[..end]).expect_err("cut off");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{program}, {end} bytes: {error}");
    }
    for at in [packed.len() / 2, packed.len() - 3] {
        let mut changed = packed.clone();
        changed[at] ^= 0x10;
        assert!(read(&changed).is_err(), "{program} with a bit changed at {at}");
    }
}

#[test]
fn compression_is_detected_from_the_first_bytes() {
    check("gzip", &["-1"]);
    check("zstd", &["-q", "-3", "--check"]);
    check("zstd", &["-q", "-19", "--check"]);
    check("xz", &["-1"]);
    check("xz", &["-0", "--block-size=100KiB", "--check=sha256"]);
    check("bzip2", &["-1"]);
    let content = content();
    assert!(read(&content).expect("read") == content);
    assert!(read(b"").expect("nothing").is_empty());
}

#[test]
fn frames_of_zstd_that_are_to_be_skipped_are() {
    let Some(packed) = by("zstd", &["-q"], b"text") else { return };
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
    assert_eq!(read(&[&skipped[..], &packed, &skipped].concat()).expect("read"), b"text");
    assert!(read(&[&packed[..], &skipped[..9]].concat()).is_err());
}

#[test]
fn unsupported_formats_are_named() {
    let error = read(b"PK\x03\x04").expect_err("unsupported");
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert!(error.to_string().contains("a zip archive"), "{error}");
}

#[test]
fn dropping_the_reader_stops_the_thread() {
    let endless = io::repeat(7);
    let first = read_ahead::with_read_ahead(
        endless,
        |_| {},
        |ahead| ahead.fill_buf().map(<[u8]>::len).expect("a piece"),
    );
    assert!(first > 0);
}
