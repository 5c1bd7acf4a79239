//! Heredocs: `<<NAME`, `<<-NAME`, `<<"NAME"`, and their content.

use super::line::{Line, Physical, Raw};
use super::refusal::Refusal;
use super::split;

/// `<<NAME` as a word of an instruction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) name: String,
    pub(super) chomp: bool,
    pub(super) expand: bool,
}

/// Reads the content of an instruction's heredocs.
pub(super) fn take(line: &Line, rest: &mut Physical<'_>) -> Result<Vec<Raw>, Refusal> {
    let mut taken = Vec::new();
    if !line.text.contains("<<") || !may_have(line) {
        return Ok(taken);
    }
    let Some(found) = split::raw(line.part()) else { return Ok(taken) };
    for word in found {
        let Some(opening) = opening(word.text()) else { continue };
        let mut content = String::new();
        let mut start = None;
        let (span, end) = loop {
            let Some((at, next)) = rest.next() else {
                let name = opening.name;
                return Err(Refusal::new(word.span(), format!("no line `{name}` ends this heredoc"))
                    .help(format!("write `{name}` alone on a later line, without spaces around it")));
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

/// Whether an instruction can have heredocs: `RUN`, `COPY` and `ADD`, unless their arguments are JSON.
fn may_have(line: &Line) -> bool {
    let (mut keyword, mut rest) = line.part().split_first();
    if keyword.text().eq_ignore_ascii_case("ONBUILD") {
        (keyword, rest) = rest.split_first();
    }
    let takes = ["RUN", "COPY", "ADD"].iter().any(|known| keyword.text().eq_ignore_ascii_case(known));
    takes && split::json(split::flags(rest).1).is_none()
}

/// The heredoc that a word begins: `3<<-"NAME"`.
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
    let name = split::unquoted(written)?;
    (!name.is_empty()).then(|| Opening { name, chomp, expand: !written.contains(['\'', '"']) })
}
