//! Comments that describe arguments and stages, as `docker build --call=outline` prints them.

use super::super::line::Line;
use super::super::rules::Lint;
use super::super::split;
use super::findings::{Findings, keyword};

/// Reports comments directly above an `ARG` or a named stage that do not begin with its name.
pub(super) fn check(text: &str, lines: &[Line], findings: &mut Findings) {
    for line in lines {
        let rest = split::flags(line.part().split_first().1).1;
        let words = split::by_blanks(rest);
        let (what, name) = match (keyword(line).as_str(), words.as_slice()) {
            ("ARG", [word]) => ("argument", word.text().split('=').next().unwrap_or_default()),
            ("FROM", [_, word, name]) if word.text().eq_ignore_ascii_case("AS") => ("stage", name.text()),
            _ => continue,
        };
        let before = text[..line.span.start].trim_end_matches([' ', '\t']);
        let Some(above) = before.strip_suffix('\n') else { continue };
        let start = above.rfind('\n').map_or(0, |at| at + 1);
        let comment = above[start..].trim_end();
        let Some(description) = comment.trim_start().strip_prefix('#') else { continue };
        let described = description.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(' '));
        if !described && !description.trim().is_empty() && !description.contains('=') {
            findings.add(
                Lint::InvalidDefinitionDescription,
                start..start + comment.len(),
                format!("the comment above the {what} `{name}` does not describe it"),
                format!("write `# {name} DESCRIPTION`, or put an empty line below the comment"),
            );
        }
    }
}
