use proptest::prelude::*;

use super::*;

fn check(values: &[&str], text: &str, expected: &str) {
    let masks = Redactor::new(values.iter().map(|value| value.as_bytes()));
    assert_eq!(String::from_utf8_lossy(&masks.redact(text.as_bytes())), expected);
}

#[test]
fn values_are_redacted_wherever_they_stand() {
    check(&["hunter22"], "password=hunter22 and hunter22hunter22.", "password=*** and ******.");
    check(&["hunter22"], "hunter2", "hunter2");
    check(&[], "anything", "anything");
}

#[test]
fn a_value_in_another_is_redacted_with_it() {
    check(&["token", "token-long"], "token-long, token", "***, ***");
    check(&["abcd", "cdef"], "xabcdefx", "x***x");
    check(&["aaaa"], "aaaaaaaaa", "***");
}

#[test]
fn a_value_of_several_lines_is_redacted_line_by_line() {
    check(&["-----BEGIN KEY-----\r\nMIIEow==\nab\n"], "-----BEGIN KEY-----\nMIIEow==\nab", "***\n***\nab");
}

#[test]
fn a_short_value_is_not_looked_for() {
    check(&["abc", ""], "abc", "abc");
}

#[test]
fn values_are_not_in_the_debug_output() {
    assert_eq!(format!("{:?}", Redactor::new([&b"hunter22"[..]])), "Redactor(1)");
}

/// The reference for the fast search: every byte of every occurrence is hidden.
fn slow(values: &[Vec<u8>], text: &[u8]) -> Vec<u8> {
    let mut runs: Vec<Range<usize>> = vec![];
    for at in 0..text.len() {
        let longest =
            values.iter().filter(|value| value.len() >= MIN_SECRET_BYTES && text[at..].starts_with(value));
        let Some(length) = longest.map(Vec::len).max() else { continue };
        match runs.last_mut().filter(|run| at < run.end) {
            Some(run) => run.end = run.end.max(at + length),
            None => runs.push(at..at + length),
        }
    }
    let mut out = vec![];
    let mut at = 0;
    for run in runs {
        out.extend_from_slice(&text[at..run.start]);
        out.extend_from_slice(REPLACEMENT);
        at = run.end;
    }
    out.extend_from_slice(&text[at..]);
    out
}

proptest! {
    #[test]
    fn a_text_in_pieces_is_redacted_as_the_whole(
        values in prop::collection::vec("[ab]{1,9}", 0..4),
        pieces in prop::collection::vec("[abc]{0,7}", 0..12),
    ) {
        let values: Vec<Vec<u8>> = values.into_iter().map(String::into_bytes).collect();
        let masks = Redactor::new(values.iter().map(Vec::as_slice));
        let whole = pieces.concat().into_bytes();
        let expected = slow(&values, &whole);
        prop_assert_eq!(&masks.redact(&whole), &expected);
        let (mut text, mut written, mut covered, mut out) = (vec![], 0, 0, vec![]);
        for piece in &pieces {
            text.extend_from_slice(piece.as_bytes());
            let cut = masks.decided_length(&text);
            masks.redact_range(&text, written..cut, &mut covered, &mut out);
            written = cut;
        }
        masks.redact_range(&text, written..text.len(), &mut covered, &mut out);
        prop_assert_eq!(&out, &expected);
    }
}
