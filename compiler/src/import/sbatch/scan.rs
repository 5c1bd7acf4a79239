//! What each byte of a shell script is: code, quoted text, or a comment.

/// What a byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Read by the shell.
    Code,
    /// Text in which the shell expands variables.
    Double,
    /// Text that the shell does not read.
    Single,
    /// A comment.
    Comment,
}

/// A construct that is not closed yet.
#[derive(Clone, Copy)]
enum Open {
    /// `"`.
    Quote,
    /// `$(` with its brackets.
    Bracket(usize),
}

/// The class of every byte.
pub(super) fn classes(text: &str) -> Vec<Class> {
    let bytes = text.as_bytes();
    let mut classes = vec![Class::Code; bytes.len()];
    let mut open: Vec<Open> = Vec::new();
    // The end of each here-document whose text begins at the next line, and whether it is taken literally.
    let mut documents: Vec<(String, bool)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let is_quoted = matches!(open.last(), Some(Open::Quote));
        classes[at] = if is_quoted { Class::Double } else { Class::Code };
        let mut end = at + 1;
        match bytes[at] {
            b'\\' => {
                end = (at + 2).min(bytes.len());
                let class = classes[at];
                classes[at..end].fill(class);
            }
            b'"' if is_quoted => {
                open.pop();
            }
            b'"' => open.push(Open::Quote),
            b'$' if bytes.get(at + 1) == Some(&b'(') => {
                open.push(Open::Bracket(0));
                classes[at + 1] = Class::Code;
                end = at + 2;
            }
            _ if is_quoted => {}
            b'\'' => {
                let length = text[at + 1..].find('\'').map_or(bytes.len() - at, |length| length + 2);
                end = at + length;
                classes[at..end].fill(Class::Single);
            }
            b'#' if at == 0 || b" \t\n;(".contains(&bytes[at - 1]) => {
                end = text[at..].find('\n').map_or(bytes.len(), |length| at + length);
                classes[at..end].fill(Class::Comment);
            }
            b'(' => {
                if let Some(Open::Bracket(depth)) = open.last_mut() {
                    *depth += 1;
                }
            }
            b')' => match open.last_mut() {
                Some(Open::Bracket(0)) => {
                    open.pop();
                }
                Some(Open::Bracket(depth)) => *depth -= 1,
                _ => {}
            },
            b'<' if text[at..].starts_with("<<<") => end = at + 3,
            b'<' if text[at..].starts_with("<<") => {
                let rest = text[at + 2..].trim_start_matches('-').trim_start_matches([' ', '\t']);
                let word = rest.split([' ', '\t', '\n', ';', '|', '>', ')']).next().unwrap_or_default();
                let name = word.replace(['\'', '"', '\\'], "");
                if !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) {
                    documents.push((name.clone(), name != word));
                }
                end = at + 2;
            }
            b'\n' if !documents.is_empty() => {
                for (name, is_literal) in documents.drain(..) {
                    let start = end;
                    for line in text[start..].split_inclusive('\n') {
                        end += line.len();
                        if line.trim() == name {
                            break;
                        }
                    }
                    classes[start..end].fill(if is_literal { Class::Single } else { Class::Double });
                }
            }
            _ => {}
        }
        at = end;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::{Class, classes};

    #[test]
    fn quotes_comments_and_documents() {
        let text = "a 'b' \"c $(d 'e') f\" # g\ncat <<'E'\n$x # y\nE\nh <<F\n$z\nF\ni ${x#y}\n";
        let marks: String = classes(text)
            .into_iter()
            .zip(text.chars())
            .map(|(class, c)| match (c, class) {
                ('\n', _) => '\n',
                (_, Class::Code) => '.',
                (_, Class::Double) => 'd',
                (_, Class::Single) => 's',
                (_, Class::Comment) => '#',
            })
            .collect();
        let lines: Vec<&str> = marks.lines().collect();
        assert!(lines[0].ends_with("###") && lines[0].contains("sss"), "{marks}");
        assert_eq!(lines[2], "ssssss");
        assert_eq!(lines[5], "dd");
        assert_eq!(lines[7], "........");
    }
}
