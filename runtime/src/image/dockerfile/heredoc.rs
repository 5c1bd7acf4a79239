//! Heredocs: `<<NAME`, `<<-NAME`, `<<"NAME"`, and the lines they stand for.

use super::lines::{Line, Physical};
use super::{Refusal, Span, words};

/// A heredoc as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Raw {
    /// Its name without quotes.
    pub(super) name: String,
    /// Whether leading tabs are taken off: `<<-`.
    pub(super) chomp: bool,
    /// Whether its name stands without quotes.
    pub(super) expand: bool,
    /// Its lines, tabs and all.
    pub(super) content: String,
    /// Their place.
    pub(super) span: Span,
    /// Where the line with its name ends.
    pub(super) end: usize,
}

/// `<<NAME` as a word of an instruction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) name: String,
    pub(super) chomp: bool,
    pub(super) expand: bool,
}

/// Takes the lines of an instruction's heredocs.
pub(super) fn take(line: &Line, rest: &mut Physical<'_>) -> Result<Vec<Raw>, Refusal> {
    let mut taken = Vec::new();
    if !line.text.contains("<<") || !may_have(line) {
        return Ok(taken);
    }
    let Some(found) = words::raw(line.part()) else { return Ok(taken) };
    for word in found {
        let Some(opening) = opening(word.text()) else { continue };
        let mut content = String::new();
        let mut start = None;
        let (span, end) = loop {
            let Some((at, next)) = rest.next() else {
                let name = opening.name;
                return Err(Refusal::new(word.span(), format!("no line `{name}` ends this heredoc"))
                    .help(format!("write `{name}` alone on a line behind it, without blanks around")));
            };
            let start = *start.get_or_insert(at);
            let bare = next.trim_end_matches(['\r', '\n']);
            let candidate = if opening.chomp { bare.trim_start_matches('\t') } else { bare };
            if candidate == opening.name {
                break (start..at, at + bare.len());
            }
            content.push_str(next);
        };
        taken.push(Raw {
            name: opening.name,
            chomp: opening.chomp,
            expand: opening.expand,
            content,
            span,
            end,
        });
    }
    Ok(taken)
}

/// Whether an instruction takes heredocs: `RUN`, `COPY` and `ADD`, unless their arguments are JSON.
fn may_have(line: &Line) -> bool {
    let (mut keyword, mut rest) = line.part().split_first();
    if keyword.text().eq_ignore_ascii_case("ONBUILD") {
        (keyword, rest) = rest.split_first();
    }
    let takes = ["RUN", "COPY", "ADD"].iter().any(|known| keyword.text().eq_ignore_ascii_case(known));
    takes && words::json(words::flags(rest).1).is_none()
}

/// What a word opens: `3<<-"NAME"`.
pub(super) fn opening(word: &str) -> Option<Opening> {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<")?;
    let (rest, chomp) = match rest.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let written = rest.trim_start_matches([' ', '\t']);
    if written.is_empty() || written.contains('<') {
        return None;
    }
    let name = words::unquoted(written)?;
    (!name.is_empty()).then(|| Opening { name, chomp, expand: !written.contains(['\'', '"']) })
}

impl Raw {
    /// Its lines as the one who wrote them means them.
    pub(super) fn text(&self) -> String {
        if !self.chomp {
            return self.content.clone();
        }
        self.content.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect()
    }
}
