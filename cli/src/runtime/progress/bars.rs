//! Bars: one per running item, and one for all of them.

use std::time::Instant;

use jobc_schema::plural;

use crate::runtime::quantity::bytes;
use crate::table::truncate;

/// Maximum number of items with their own bar.
const MAX_BARS: usize = 8;
/// Width of a bar in characters.
const WIDTH: usize = 24;

/// An item with progress.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) what: &'static str,
    pub(super) digest: String,
    pub(super) done: u64,
    pub(super) total: Option<u64>,
    pub(super) known: bool,
    /// Whether its end was reported.
    pub(super) end_reported: bool,
    /// When it was last reported.
    pub(super) last_reported: Option<Instant>,
    began: Instant,
}

impl Item {
    pub(super) fn new(what: &'static str, digest: &str) -> Self {
        Self {
            what,
            digest: digest.to_owned(),
            done: 0,
            total: None,
            known: false,
            end_reported: false,
            last_reported: None,
            began: Instant::now(),
        }
    }

    pub(super) fn ended(&self) -> bool {
        self.known || self.total.is_some_and(|total| self.done >= total)
    }
}

/// The name of an item: its kind and the first digits of its digest, followed by a space.
pub(super) fn label(what: &str, digest: &str) -> String {
    let digits: String = digest.split(':').next_back().unwrap_or_default().chars().take(12).collect();
    if digits.is_empty() { format!("{what} ") } else { format!("{what} {digits} ") }
}

/// The word for the end of an item.
pub(super) fn end_word(what: &str) -> &'static str {
    if what == "layer" { "unpacked" } else { "done" }
}

/// The lines to draw, none wider than the terminal.
pub(super) fn lines(items: &[Item], columns: usize) -> Vec<String> {
    let under_way = items.iter().filter(|item| item.done > 0 && !item.ended()).take(MAX_BARS);
    let mut lines: Vec<String> = under_way
        .map(|item| {
            let amount = match item.total {
                Some(total) => format!("{} {} of {}", bar(item.done, total), bytes(item.done), bytes(total)),
                None => bytes(item.done),
            };
            label(item.what, &item.digest) + &amount
        })
        .collect();
    for what in ["blob", "layer"] {
        let all: Vec<&Item> = items.iter().filter(|item| item.what == what).collect();
        let (Some(began), ended) =
            (all.iter().map(|item| item.began).min(), all.iter().filter(|item| item.ended()).count())
        else {
            continue;
        };
        let sum =
            |of: &dyn Fn(&Item) -> u64| all.iter().fold(0_u64, |sum, item| sum.saturating_add(of(item)));
        let total = sum(&|item| item.total.unwrap_or(item.done));
        let done = sum(&|item| item.done.min(item.total.unwrap_or(u64::MAX)));
        let came = sum(&|item| if item.known { 0 } else { item.done });
        let rate = per_second(came, began.elapsed().as_millis());
        lines.push(format!(
            "{ended} of {} {} {} of {}, {}/s",
            plural(all.len(), what),
            bar(done, total),
            bytes(done),
            bytes(total),
            bytes(rate)
        ));
    }
    // The last column is left free: some terminals wrap when it is written.
    lines.iter().map(|line| truncate(line, columns.saturating_sub(1))).collect()
}

fn per_second(amount: u64, milliseconds: u128) -> u64 {
    u64::try_from(u128::from(amount) * 1000 / milliseconds.max(1)).unwrap_or(u64::MAX)
}

/// A bar of a fixed width: `[######                  ]`.
fn bar(done: u64, total: u64) -> String {
    let full = u128::from(done.min(total)) * WIDTH as u128 / u128::from(total.max(1));
    let full = usize::try_from(full).unwrap_or(WIDTH);
    format!("[{}{}]", "#".repeat(full), " ".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(what: &'static str, digest: &str, done: u64, total: Option<u64>) -> Item {
        Item { done, total, ..Item::new(what, digest) }
    }

    #[test]
    fn each_running_item_and_the_total_have_a_bar() {
        let items = [
            item("blob", "sha256:0123456789abcdef", 512, Some(1024)),
            item("blob", "sha256:fedcba9876543210", 1024, Some(1024)),
            item("blob", "sha256:aaaaaaaaaaaaaaaa", 0, Some(2048)),
            item("source", "", 10, None),
        ];
        let lines = lines(&items, 200);
        assert_eq!(lines[0], "blob 0123456789ab [############            ] 512 B of 1.0 KiB");
        assert_eq!(lines[1], "source 10 B");
        assert!(
            lines[2].starts_with("1 of 3 blobs [#########               ] 1.5 KiB of 4.0 KiB, "),
            "{}",
            lines[2]
        );
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn no_line_fills_the_terminal_and_no_amount_breaks_it() {
        let items = [
            item("layer", "sha256:0123456789abcdef", u64::MAX, Some(u64::MAX - 1)),
            item("blob", "x", 7, Some(0)),
        ];
        for columns in [0, 1, 20, 40] {
            assert!(
                lines(&items, columns).iter().all(|line| line.chars().count() < columns.max(2)),
                "{columns}"
            );
        }
        assert_eq!(bar(3, 0), format!("[{}]", " ".repeat(WIDTH)));
        assert_eq!(bar(u64::MAX, 1), format!("[{}]", "#".repeat(WIDTH)));
    }
}
