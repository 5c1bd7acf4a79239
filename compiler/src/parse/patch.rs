//! Updates the tree of a YAML text after an edit, without parsing the whole text again.
//!
//! An entry of a block map is independent text: its first line begins with its key, and the next line that is not
//! indented deeper begins the next entry. So an edit below a key is parsed alone, with the lines of its entry, and put
//! into the tree; later spans are shifted. If the whole text might mean something else, the caller must parse it all.

use std::ops::Range;

use crate::diagnostic::Sink;
use crate::document::{Document, Entry, Node, Value};

use super::limits::{MAX_BYTES, MAX_DEPTH};
use super::report::Report;
use super::{begins_like_json, yaml};

/// How many enclosing entries are tried before the whole text is parsed.
const MAX_TRIES: usize = 3;

/// The maximum depth at which an edit is located.
const MAX_STEPS: usize = 16;

/// A key that no text contains: a private-use character.
const NEXT: &str = "\u{e0f4}";

/// The byte ranges in which two texts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The start of the difference.
    pub start: usize,
    /// The end of the difference in the old text.
    pub old_end: usize,
    /// The end of the difference in the new text.
    pub new_end: usize,
}

impl Change {
    /// Compares two texts; both ends are at character boundaries.
    pub fn between(old: &str, new: &str) -> Self {
        let (a, b) = (old.as_bytes(), new.as_bytes());
        let max = a.len().min(b.len());
        let mut start = equal_chunks(a, b, max);
        while start < max && a[start] == b[start] {
            start += 1;
        }
        while !(old.is_char_boundary(start) && new.is_char_boundary(start)) {
            start -= 1;
        }
        let max = max - start;
        let mut tail = 0;
        while tail + CHUNK <= max
            && a[a.len() - tail - CHUNK..a.len() - tail] == b[b.len() - tail - CHUNK..b.len() - tail]
        {
            tail += CHUNK;
        }
        while tail < max && a[a.len() - tail - 1] == b[b.len() - tail - 1] {
            tail += 1;
        }
        while !(old.is_char_boundary(a.len() - tail) && new.is_char_boundary(b.len() - tail)) {
            tail -= 1;
        }
        let (old_end, new_end) = (a.len() - tail, b.len() - tail);
        // For whole lines that were inserted or removed, use the line ending before them, not that of the last one.
        let ends_line = |text: &[u8], end: usize| end > 0 && text[end - 1] == b'\n';
        let whole = (start == old_end || start == new_end) && ends_line(a, old_end) && ends_line(b, new_end);
        let back = usize::from(whole);
        Self { start: start - back, old_end: old_end - back, new_end: new_end - back }
    }

    /// The number of bytes by which the text after the difference is shifted.
    pub fn by(self) -> i32 {
        i32::try_from(self.new_end).unwrap_or(i32::MAX) - i32::try_from(self.old_end).unwrap_or(i32::MAX)
    }
}

/// The size of the chunks in which texts are compared first.
const CHUNK: usize = 256;

fn equal_chunks(a: &[u8], b: &[u8], max: usize) -> usize {
    let mut at = 0;
    while at + CHUNK <= max && a[at..at + CHUNK] == b[at..at + CHUNK] {
        at += CHUNK;
    }
    at
}

/// Updates the tree of `old` to that of `new`; returns `false`, with the tree unchanged, if all must be parsed.
///
/// The tree must be the result of [`parse`](super::parse) for `old` as YAML without findings. If this returns `true`,
/// it is the result of `parse` for `new`, also without findings.
pub fn patch(document: &mut Document, old: &str, new: &str) -> bool {
    if begins_like_json(old) || may_share(old) || new.len() > MAX_BYTES {
        return false;
    }
    let change = Change::between(old, new);
    let regions = regions(&document.root, old, change);
    regions.iter().enumerate().rev().take(MAX_TRIES).any(|(depth, region)| {
        let steps: Vec<usize> = regions[..=depth].iter().map(|region| region.index).collect();
        let Some(entries) = read(document, region, &steps, new, change) else { return false };
        put(&mut document.root, &steps, entries, change.by());
        true
    })
}

/// The lines of one entry of a block map.
struct Region {
    /// The index of the entry in its map.
    index: usize,
    /// Its bytes in the old text, from the start of a line to the start of another.
    bytes: Range<usize>,
}

/// The entries that contain the whole edit below their key, from the outermost to the innermost.
fn regions(root: &Node, old: &str, change: Change) -> Vec<Region> {
    let mut found: Vec<Region> = vec![];
    let (mut node, mut end) = (root, old.len());
    while found.len() < MAX_STEPS {
        let entries = node.entries();
        let flow = old.as_bytes().get(node.span.start as usize) == Some(&b'{');
        let after = entries.partition_point(|entry| (entry.key_span.end as usize) < change.start);
        let Some(index) = after.checked_sub(1).filter(|_| !flow) else { break };
        let Some(start) = line_start(old, &entries[index]) else { break };
        if let Some(next) = entries.get(index + 1) {
            let Some(next) = line_start(old, next) else { break };
            end = next;
        }
        // The line ending that separates it from the next entry must be kept.
        if change.old_end >= end && end < old.len() {
            break;
        }
        found.push(Region { index, bytes: start..end });
        node = &entries[index].value;
    }
    found
}

/// The start of a key's line, if only spaces precede the key.
fn line_start(text: &str, entry: &Entry) -> Option<usize> {
    let key = entry.key_span.start as usize;
    let before = text.get(..key)?;
    let start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    before[start..].bytes().all(|byte| byte == b' ').then_some(start)
}

/// Parses the new lines of an entry; `None` if they cannot be parsed alone.
fn read(
    document: &Document,
    region: &Region,
    steps: &[usize],
    new: &str,
    change: Change,
) -> Option<Vec<Entry>> {
    let end = region.bytes.end.checked_add_signed(change.by() as isize)?;
    let text = new.get(region.bytes.start..end)?;
    let control = |byte: u8| (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')) || byte == 0x7f;
    if text.bytes().any(control) || may_share(text) {
        return None;
    }
    let marker = |line: &str| line.starts_with("---") || line.starts_with("...") || line.starts_with('%');
    if text.lines().any(marker) {
        return None;
    }
    let siblings = steps[..steps.len() - 1]
        .iter()
        .try_fold(&document.root, |node, &step| node.entries().get(step).map(|entry| &entry.value))?;
    let before = &siblings.entries()[region.index];
    // The text that follows ends a multi-line scalar; a placeholder key does the same.
    let goes_on = end < new.len();
    let column = before.key_span.start as usize - region.bytes.start;
    let text = if goes_on { format!("{text}{}{NEXT}: 0\n", " ".repeat(column)) } else { text.to_owned() };
    let mut sink = Sink::new();
    let mut report = Report::new(document.root.span.source, &mut sink);
    let root = yaml::load(&text, &mut report);
    report.finish();
    let mut root = root.filter(|_| sink.diagnostics().is_empty())?;
    root.shift(i32::try_from(region.bytes.start).ok()?);
    if height(&root) + steps.len() > MAX_DEPTH {
        return None;
    }
    let Value::Mapping(mut entries) = root.value else { return None };
    if goes_on {
        entries.pop().filter(|entry| entry.key == NEXT)?;
    }
    let (first, last) = (entries.first()?, entries.last()?);
    // An empty `|` scalar extends to the text that follows, wherever that begins.
    if last.value.span.end as usize > end {
        return None;
    }
    let same = first.key == before.key && first.key_span == before.key_span;
    // Another entry is a new one, and its key must be unique.
    let others = siblings.entries().iter().enumerate().filter(|(index, _)| *index != region.index);
    let twice = entries.len() > 1
        && others.into_iter().any(|(_, other)| entries.iter().any(|entry| entry.key == other.key));
    (same && !twice).then_some(entries)
}

/// Whether a text may contain an anchor or an alias, which affect other parts of the document.
fn may_share(text: &str) -> bool {
    let bytes = text.as_bytes();
    let begins = |at: usize| {
        let before = text[..at].trim_end_matches([' ', '\t']);
        before.is_empty()
            || before.ends_with([':', '-', '[', '{', ',', '?', '\n', '\r', '!'])
            || before.rsplit(char::is_whitespace).next().is_some_and(|word| word.starts_with('!'))
    };
    let named = |at: usize| bytes.get(at + 1).is_some_and(|byte| !byte.is_ascii_whitespace());
    bytes.iter().enumerate().any(|(at, byte)| matches!(byte, b'&' | b'*') && named(at) && begins(at))
}

fn height(node: &Node) -> usize {
    let below =
        node.entries().iter().map(|entry| height(&entry.value)).chain(node.items().iter().map(height));
    match node.value {
        Value::Mapping(_) | Value::Sequence(_) => 1 + below.max().unwrap_or(0),
        _ => 0,
    }
}

/// Replaces an entry with others, and shifts later spans.
fn put(node: &mut Node, steps: &[usize], new: Vec<Entry>, by: i32) {
    let Value::Mapping(entries) = &mut node.value else { return };
    let Some((&index, below)) = steps.split_first() else { return };
    entries[index + 1..].iter_mut().for_each(|entry| entry.shift(by));
    if below.is_empty() {
        entries.splice(index..=index, new);
    } else {
        put(&mut entries[index].value, below, new, by);
    }
    // A block ends at the end of its last child.
    if let Some(last) = entries.last() {
        node.span.end = last.value.span.end;
    }
}
