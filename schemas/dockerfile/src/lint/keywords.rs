//! The case of keywords.

use super::super::instruction::KEYWORDS;
use super::super::line::Line;
use super::super::rules::Lint;
use super::super::split;
use super::findings::{Findings, keyword};

/// Reports keywords that differ from the others, and `AS` that differs from its `FROM`.
pub(super) fn check(lines: &[Line], findings: &mut Findings) {
    let known: Vec<&Line> = lines.iter().filter(|line| KEYWORDS.contains(&keyword(line).as_str())).collect();
    let is_lower = |text: &str| text == text.to_ascii_lowercase();
    let is_upper = |text: &str| text == text.to_ascii_uppercase();
    let written = |line: &Line| line.part().split_first().0.text().to_owned();
    let lower = known.iter().filter(|line| is_lower(&written(line))).count();
    let upper = known.iter().filter(|line| is_upper(&written(line))).count();
    for line in known {
        let (word, rest) = line.part().split_first();
        let (case, wanted) = if lower > upper {
            ("lower case", word.text().to_ascii_lowercase())
        } else {
            ("upper case", word.text().to_ascii_uppercase())
        };
        if word.text() != wanted {
            findings.fix(
                Lint::ConsistentInstructionCasing,
                word.span(),
                format!("`{}` is not in {case} as most keywords of this file", word.text()),
                format!("write `{wanted}`"),
                wanted,
            );
        }
        if keyword(line) != "FROM" {
            continue;
        }
        let words = split::by_blanks(split::flags(rest).1);
        let [_, as_word, _] = words.as_slice() else { continue };
        let wanted = if is_upper(word.text()) {
            "AS"
        } else if is_lower(word.text()) {
            "as"
        } else {
            continue;
        };
        if as_word.text() != wanted && as_word.text().eq_ignore_ascii_case("as") {
            findings.fix(
                Lint::FromAsCasing,
                as_word.span(),
                format!("`{}` and `{}` differ in case", word.text(), as_word.text()),
                format!("write `{wanted}`"),
                wanted,
            );
        }
    }
}
