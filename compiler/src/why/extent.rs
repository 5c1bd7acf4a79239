//! The extent of a part's value: the source map has only its first line; this finds the last one.

use super::lines::Lines;
use super::source_map::Part;

/// The last line of a part that begins on a line, from 1; [`super::causes_of_line`] has the part for all lines between.
///
/// It is the last line of the value, or of the paragraph in a text, unless another part begins before.
pub(super) fn last_line_of(part: &Part, line: u32, parts: &[Part], lines: &Lines) -> u32 {
    let (end, next) = if let Some(pointer) = &part.pointer {
        let below = format!("{pointer}/");
        let inner = parts.iter().filter_map(|other| other.pointer.as_deref());
        let inner = inner.filter(|other| other.starts_with(&below));
        (lines.last_line_of(pointer), inner.filter_map(|other| lines.line_of(other)).min())
    } else {
        let later = parts.iter().filter_map(|other| other.line).filter(|&other| other > line);
        (Some(lines.end_of_block(line)), later.min())
    };
    end.unwrap_or(line).min(next.map_or(u32::MAX, |next| next - 1)).max(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_line(line: u32) -> Part {
        Part { line: Some(line), ..Part::default() }
    }

    fn at_pointer(pointer: &str) -> Part {
        Part { pointer: Some(pointer.to_owned()), ..Part::default() }
    }

    #[test]
    fn a_value_extends_to_its_end_or_to_the_first_part_in_it() {
        let text = "data:\n  run: |\n    one\n    two\n  env:\n    A: 1\n    B: 2\nlast: x\n";
        let lines = Lines::new("a.yaml", text);
        let inner = [at_pointer("/data/run"), at_pointer("/data/env/B")];
        for (pointer, line, alone, among) in
            [("/data", 1, 7, 1), ("/data/run", 2, 4, 4), ("/data/env", 5, 7, 6), ("/last", 8, 8, 8)]
        {
            let part = at_pointer(pointer);
            assert_eq!(last_line_of(&part, line, &[], &lines), alone, "{pointer}");
            assert_eq!(last_line_of(&part, line, &inner, &lines), among, "{pointer} with parts in it");
        }
        // A value that the file omits has its nearest ancestor's line.
        assert_eq!(last_line_of(&at_pointer("/data/gone"), 1, &[], &lines), 1);
    }

    #[test]
    fn a_line_of_a_text_extends_to_the_next_part_or_the_end_of_its_paragraph() {
        let lines = Lines::new("run.sh", "#!/bin/sh\nset -e\na\nb\n\nc\n");
        let parts = [at_line(2), at_line(3), at_line(6)];
        for (line, last) in [(2, 2), (3, 4), (6, 6)] {
            assert_eq!(last_line_of(&at_line(line), line, &parts, &lines), last, "{line}");
        }
        assert_eq!(last_line_of(&at_line(2), 2, &parts[..1], &lines), 4);
    }
}
