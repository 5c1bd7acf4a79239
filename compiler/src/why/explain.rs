//! The reason for each line of a built file.

use super::causes::reason_of;
use super::lines::Lines;
use super::source_map::Part;

/// A line of a built file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedLine<'a> {
    /// The line.
    pub text: String,
    /// The values on it, or whether it is more than the punctuation of a tree.
    pub has_value: bool,
    /// Why the values are there.
    pub reasons: Vec<&'a Part>,
}

/// The lines of a built file, each with its reasons.
pub fn explain<'a>(parts: &'a [Part], path: &str, text: &str) -> Vec<ExplainedLine<'a>> {
    let lines = Lines::new(path, text);
    let is_tree = lines.tree().is_some();
    let numbered = (1..).zip(text.lines());
    let explained = numbered.map(|(number, line)| {
        let mut reasons: Vec<&Part> = vec![];
        let mut has_value = !is_tree && !line.trim().is_empty();
        if is_tree {
            for pointer in lines.pointers_at(number) {
                has_value |= lines.is_value(&pointer);
                reasons.extend(reason_of(parts, pointer.as_str()));
            }
        } else {
            reasons.extend(super::causes_of_line(parts, &lines, number).into_iter().flat_map(|it| it.parts));
        }
        ExplainedLine { text: line.to_owned(), has_value, reasons }
    });
    explained.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_reason_of_its_value_or_of_what_it_is_in() {
        let part = |pointer: &str, why: &str| Part {
            pointer: Some(pointer.to_owned()),
            default: Some(why.to_owned()),
            ..Part::default()
        };
        let parts = [part("/spec/a", "one"), part("/spec/list/1", "two")];
        let text = "kind: Job\nspec:\n  a:\n    b: |\n      x\n      y\n  list:\n  - p\n  - q: 1\n    r: 2\n";
        let found: Vec<(bool, Vec<&str>)> = explain(&parts, "job.yaml", text)
            .iter()
            .map(|line| {
                (line.has_value, line.reasons.iter().filter_map(|part| part.default.as_deref()).collect())
            })
            .collect();
        let (none, one, two) = (vec![], vec!["one"], vec!["two"]);
        assert_eq!(
            found,
            [
                (true, none.clone()),
                (false, none.clone()),
                (false, one.clone()),
                (true, one.clone()),
                (true, one.clone()),
                (true, one),
                (false, none.clone()),
                (true, none),
                (true, two.clone()),
                (true, two)
            ]
        );
    }
}
