//! Replaces tabs in the indentation with the spaces that the surrounding lines have.

use std::ops::Range;

use crate::diagnostic::Safety;

use super::is_yaml;

/// Replacements for indentations with tabs.
pub(super) type Replacement = (Range<usize>, String);

/// Replaces the tabs in the indentation of all lines; `None` if the surrounding lines are ambiguous, or if the text
/// would still not be valid YAML. It is safe if the lines nest the same way for every width of a tab.
pub(super) fn replaced(text: &str) -> Option<(Vec<Replacement>, Safety)> {
    let mut levels = Levels { step: step(text), ..Levels::default() };
    let mut replacements = Vec::new();
    let mut safety = Safety::Safe;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let content = line[indent.len()..].trim_end();
        if !content.is_empty() {
            let spaces = levels.of(indent, content.starts_with("- "))?;
            if indent.contains('\t') {
                replacements.push((start..start + indent.len(), " ".repeat(spaces)));
            }
            if !content.starts_with('#') {
                if !levels.nests_for_any_width(indent, spaces) {
                    safety = Safety::Unsafe;
                }
                levels.enter(indent, spaces, content);
            }
        }
        start += line.len();
    }
    let mut mended = text.to_owned();
    for (range, spaces) in replacements.iter().rev() {
        mended.replace_range(range.clone(), spaces);
    }
    is_yaml(&mended).then_some((replacements, safety))
}

/// The smallest indentation in spaces that the file uses; two if it has none.
fn step(text: &str) -> usize {
    let widths = text.lines().filter_map(|line| {
        let content = line.trim_start_matches(' ');
        let width = line.len() - content.len();
        (width > 0 && !content.is_empty() && !content.starts_with(['\t', '#'])).then_some(width)
    });
    widths.min().unwrap_or(2)
}

/// The indentation of an item's keys.
const ITEM: &str = "- ";

/// The indentations of previous lines that the next line can belong to.
#[derive(Default)]
struct Levels<'t> {
    /// The number of spaces per level.
    step: usize,
    /// Indentation as written, and in spaces.
    open: Vec<(&'t str, usize)>,
    /// Whether the last line begins a level: a key without a value, or a block scalar's header.
    opens: bool,
}

impl<'t> Levels<'t> {
    /// The number of spaces to indent a line.
    fn of(&self, indent: &str, item: bool) -> Option<usize> {
        if !indent.contains('\t') {
            return Some(indent.len());
        }
        let last = self.open.last().map_or(0, |(_, spaces)| *spaces);
        if let Some((_, spaces)) = self.open.iter().rev().find(|(written, _)| *written == indent) {
            return Some(*spaces);
        }
        if self.opens {
            return Some(last + self.step);
        }
        let widths = [self.step, 8, 4, 2].into_iter().map(|tab| width(indent, tab));
        let items = |spaces: usize| self.open.contains(&(ITEM, spaces + 2));
        let fitting =
            |spaces: &usize| self.open.iter().any(|(_, open)| open == spaces) && (item || !items(*spaces));
        widths.into_iter().find(fitting)
    }

    /// Whether a line is as deep in comparison with the open levels as its spaces say, for tabs of any width: the
    /// extremes are enough, as in Python's check of indentation.
    fn nests_for_any_width(&self, indent: &str, spaces: usize) -> bool {
        let mut indent_of_item = "";
        self.open.iter().all(|(written, open)| {
            let inside = if *written == ITEM { ITEM.len() } else { 0 };
            if inside == 0 {
                indent_of_item = written;
            }
            [1, 8].iter().all(|tab| {
                width(indent, *tab).cmp(&(width(indent_of_item, *tab) + inside)) == spaces.cmp(open)
            })
        })
    }

    /// Records a line.
    fn enter(&mut self, indent: &'t str, spaces: usize, content: &str) {
        self.open.retain(|(_, open)| *open < spaces);
        self.open.push((indent, spaces));
        if content.starts_with("- ") {
            // The keys of a map in a list are below its first key.
            self.open.push((ITEM, spaces + 2));
        }
        let code = content.split(" #").next().unwrap_or_default().trim_end();
        self.opens = code.ends_with([':', '|', '>']) || code.ends_with("|-") || code == "-";
    }
}

/// The column after an indentation, with tab stops at multiples of `tab`.
fn width(indent: &str, tab: usize) -> usize {
    indent.chars().fold(0, |column, c| if c == '\t' { (column / tab + 1) * tab } else { column + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace_tabs(text: &str) -> Option<String> {
        let mut mended = text.to_owned();
        for (range, spaces) in replaced(text)?.0.into_iter().rev() {
            mended.replace_range(range, &spaces);
        }
        Some(mended)
    }

    #[test]
    fn tabs_become_the_indentation_of_surrounding_lines() {
        let check = |text: &str, expected: &str| assert_eq!(replace_tabs(text).as_deref(), Some(expected));
        check("a:\n\tb:\n\t\tc: 1\n\t\td: 2\n", "a:\n  b:\n    c: 1\n    d: 2\n");
        check("a:\n    b:\n\tc: 1\n", "a:\n    b:\n        c: 1\n");
        check("a:\n    b: 1\n\tc: 1\n", "a:\n    b: 1\n    c: 1\n");
        check("a:\n    b:\n        c: 1\n\t\td: 1\n", "a:\n    b:\n        c: 1\n        d: 1\n");
        check("a:\n  - b: 1\n\tc: 1\n", "a:\n  - b: 1\n    c: 1\n");
        check("a:\n  run: |\n\techo\n\techo\n  b: 1\n", "a:\n  run: |\n    echo\n    echo\n  b: 1\n");
    }

    #[test]
    fn replacing_is_safe_if_the_width_of_a_tab_does_not_matter() {
        let check = |text: &str, safety| assert_eq!(replaced(text).map(|(_, safety)| safety), Some(safety));
        check("a:\n\tb:\n\t\tc: 1\n\td: 2\n", Safety::Safe);
        check("a:\n\t- b: 1\n\t  c: 1\n\t- b: 2\n", Safety::Safe);
        check("a:\n  run: |\n  \techo\n  \techo\n  b: 1\n", Safety::Safe);
        check("a:\n    b: 1\n\tc: 1\n", Safety::Unsafe);
        check("a:\n  b:\n\tc: 1\n", Safety::Unsafe);
        check("a:\n\tb:\n        c: 1\n", Safety::Unsafe);
        check("a:\n  - b: 1\n\tc: 1\n", Safety::Unsafe);
    }

    #[test]
    fn ambiguous_tabs_are_not_replaced() {
        assert_eq!(replace_tabs("a:\n   b: 1\n\tc: 1\n\t\td: 1\n"), None);
        assert_eq!(replace_tabs("a: 1\n\tb: [\n"), None);
    }
}
