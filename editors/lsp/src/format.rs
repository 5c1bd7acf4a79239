//! Formatting: the edits from a text to its canonical form.

use jobc_compiler::format;
use lsp_types::TextEdit;

use crate::text::Text;

/// The edits that format a YAML text; none for JSON, or for a text with syntax errors.
///
/// Equal lines at both ends are left out. In between, if no line was added, removed or moved, each changed line is one
/// edit, so that the editor keeps what it knows about the others.
pub(crate) fn format(text: &Text) -> Vec<TextEdit> {
    let old = text.as_str();
    let Some(new) = format::format(old).filter(|new| new != old) else { return vec![] };
    let (before, after): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let first = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - first;
    let last = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (changed, replaced) = (&before[first..before.len() - last], &after[first..after.len() - last]);
    let start: usize = before[..first].iter().map(|line| line.len()).sum();
    if changed.len() != replaced.len() {
        let end = start + changed.iter().map(|line| line.len()).sum::<usize>();
        return vec![TextEdit { range: text.range(start..end), new_text: replaced.concat() }];
    }
    let mut edits = vec![];
    let mut at = start;
    for (old, new) in changed.iter().zip(replaced) {
        if old != new {
            let is_ended = old.ends_with('\n') && new.ends_with('\n');
            let cut = usize::from(is_ended);
            let range = text.range(at..at + old.len() - cut);
            edits.push(TextEdit { range, new_text: new[..new.len() - cut].to_owned() });
        }
        at += old.len();
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::format;
    use crate::text::{Encoding, Text};

    #[test]
    fn only_changed_lines_are_edited() {
        let text = Text::new("version: 1\nname: x  \nroles: {a: {run: x}}\n".to_owned(), Encoding::Utf16);
        let edits = format(&text);
        assert_eq!(edits.len(), 1);
        assert_eq!((edits[0].range.start.line, &*edits[0].new_text), (1, "name: x"));
    }

    #[test]
    fn moved_lines_are_one_edit() {
        let text = "version: 1\nname: x\nroles:\n  a:\n    run: x\n    instances: 2\ntimeout: 1h\n";
        let edits = format(&Text::new(text.to_owned(), Encoding::Utf16));
        assert_eq!(edits.iter().map(|edit| edit.range.start.line).collect::<Vec<_>>(), [4, 5]);
    }
}
