//! Here-documents that the parser does not see.
//!
//! BuildKit takes a here-document anywhere in `RUN`; the parser only one that is the whole command. The bodies of
//! the others are blanked, byte for byte, so that all positions stay as they are.

/// The text with the bodies of those here-documents made of blanks.
pub(super) fn blank(text: &str) -> String {
    let escape = escape_of(text);
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        let first = line.trim_start();
        if first.is_empty() || first.starts_with('#') {
            continue;
        }
        // The whole instruction, over its continued lines.
        let mut instruction = line.trim_end().to_owned();
        while instruction.ends_with(escape) {
            instruction.pop();
            let Some(next) = lines.next() else { break };
            out.push_str(next);
            let next = next.trim();
            if next.is_empty() || next.starts_with('#') {
                instruction.push(escape);
            } else {
                instruction.push_str(next);
            }
        }
        let (keyword, rest) =
            instruction.trim_start().split_once(char::is_whitespace).unwrap_or((&instruction, ""));
        let run = keyword.eq_ignore_ascii_case("RUN");
        if !run && !keyword.eq_ignore_ascii_case("COPY") && !keyword.eq_ignore_ascii_case("ADD") {
            continue;
        }
        let mut rest = rest.trim_start();
        while rest.starts_with("--") {
            rest = rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
        }
        for (number, document) in documents(rest).into_iter().enumerate() {
            let seen = !run || (number == 0 && rest.starts_with("<<"));
            // Without an end it is something else, or an error that the parser reports.
            let Some(length) = body(lines.clone(), &document) else { break };
            for line in lines.by_ref().take(length) {
                if seen {
                    out.push_str(line);
                } else {
                    out.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
                }
            }
        }
    }
    out
}

/// A here-document's end, and whether tabs before it are left out.
struct Document {
    end: String,
    tabs: bool,
}

/// How many lines the body takes, its end included.
fn body<'a>(lines: impl Iterator<Item = &'a str>, document: &Document) -> Option<usize> {
    lines
        .map(|line| line.trim_end_matches(['\n', '\r']))
        .position(|line| {
            let line = if document.tabs { line.trim_start_matches('\t') } else { line };
            line == document.end
        })
        .map(|number| number + 1)
}

/// The here-documents of a command: `<<` outside quotes, then a word.
fn documents(command: &str) -> Vec<Document> {
    let mut found = Vec::new();
    let mut quote = None;
    let mut rest = command.char_indices();
    while let Some((at, c)) = rest.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => drop(rest.next()),
            (None, '<') if command[at..].starts_with("<<<") => {
                rest.nth(1);
            }
            (None, '<') if command[at..].starts_with("<<") => {
                rest.next();
                let word = &command[at + 2..];
                let (tabs, word) = word.strip_prefix('-').map_or((false, word), |word| (true, word));
                let word: String =
                    word.chars().take_while(|c| !c.is_whitespace() && !";|&<>()".contains(*c)).collect();
                let end: String = word.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
                if end.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                    found.push(Document { end, tabs });
                }
                // What follows the mark may name another.
                found.extend(documents(&command[at + 2 + usize::from(tabs) + word.len()..]));
                return found;
            }
            _ => {}
        }
    }
    found
}

/// The character that continues a line: `\`, unless `# escape=` says otherwise.
fn escape_of(text: &str) -> char {
    for line in text.lines() {
        let Some(directive) = line.trim_start().strip_prefix('#') else { break };
        let Some((name, value)) = directive.split_once('=') else { break };
        if name.trim().eq_ignore_ascii_case("escape") && value.trim() == "`" {
            return '`';
        }
    }
    '\\'
}

#[cfg(test)]
mod tests {
    use super::blank;

    #[test]
    fn only_unseen_bodies_are_blanked() {
        let seen = "FROM a\nRUN <<EOF\nx\nEOF\nCOPY <<A <<B /x\n1\nA\n2\nB\n";
        assert_eq!(blank(seen), seen);
        let unseen =
            "FROM a\nRUN --mount=type=cache,target=/x python3 <<EOF\nimport os\n\u{540d}\nEOF\nUSER b\n";
        let blanked = blank(unseen);
        assert_eq!(blanked.len(), unseen.len());
        assert!(!blanked.contains("import") && blanked.contains("USER b"), "{blanked}");
        let second = "FROM a\nRUN <<A cat <<-'B'\n1\nA\n\t2\n\tB\nUSER b\n";
        assert!(blank(second).contains("1\nA\n") && !blank(second).contains('2'));
    }

    #[test]
    fn what_is_no_here_document_stays() {
        for text in [
            "FROM a\nRUN cat <<< EOF\nUSER EOF\n",
            "FROM a\nRUN echo $((1<<2))\nUSER b\n",
            "FROM a\nRUN echo '<<EOF'\nUSER b\nEOF\n",
            "FROM a\n# RUN x <<EOF\nUSER b\nEOF\n",
            "FROM a\nRUN x <<EOF\nUSER b\n",
        ] {
            assert_eq!(blank(text), text);
        }
    }

    #[test]
    fn continued_lines_are_one_instruction() {
        let text = "# escape=`\nFROM a\nRUN x `\n # note\n  <<EOF\nbody\nEOF\n";
        assert!(!blank(text).contains("body"));
        assert!(blank(text).contains("# note"));
    }
}
