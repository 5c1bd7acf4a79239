//! Patterns of tags: text, `{hole}`, `{hole:kind}` and `[optional part]`.

use indexmap::IndexMap;

/// A part of a pattern.
enum Token<'f> {
    /// Literal text.
    Literal(&'f str),
    /// A placeholder with its name and its kind: empty for a version, `word`, `rest`, or alternatives separated by `|`.
    Hole(&'f str, &'f str),
    /// An optional part.
    Optional(Vec<Token<'f>>),
}

/// The values of a pattern's placeholders, if it matches a whole tag.
pub(super) fn fill(form: &str, tag: &str) -> Option<IndexMap<String, String>> {
    let tokens = tokens(&mut &form[..]);
    let refs: Vec<&Token<'_>> = tokens.iter().collect();
    let mut holes = Vec::new();
    matches(&refs, tag, &mut holes)
        .then(|| holes.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn tokens<'f>(form: &mut &'f str) -> Vec<Token<'f>> {
    let mut list = Vec::new();
    while let Some(first) = form.chars().next() {
        match first {
            ']' => {
                *form = &form[1..];
                break;
            }
            '[' => {
                *form = &form[1..];
                list.push(Token::Optional(tokens(form)));
            }
            '{' => {
                let end = form.find('}').unwrap_or(form.len() - 1);
                let (name, kind) = form[1..end].split_once(':').unwrap_or((&form[1..end], ""));
                list.push(Token::Hole(name, kind));
                *form = &form[end + 1..];
            }
            _ => {
                let end = form.find(['[', ']', '{']).unwrap_or(form.len());
                list.push(Token::Literal(&form[..end]));
                *form = &form[end..];
            }
        }
    }
    list
}

/// Whether the tokens match the whole text; sets the values of the placeholders.
fn matches<'f, 't>(tokens: &[&Token<'f>], text: &'t str, holes: &mut Vec<(&'f str, &'t str)>) -> bool {
    let Some((first, rest)) = tokens.split_first() else { return text.is_empty() };
    match first {
        Token::Literal(literal) => text.strip_prefix(literal).is_some_and(|text| matches(rest, text, holes)),
        Token::Optional(inner) => {
            let with: Vec<&Token<'f>> = inner.iter().chain(rest.iter().copied()).collect();
            matches(&with, text, holes) || matches(rest, text, holes)
        }
        Token::Hole(name, kind) => ends(kind, text).into_iter().any(|end| {
            let before = holes.len();
            holes.push((name, &text[..end]));
            let fits = matches(rest, &text[end..], holes);
            if !fits {
                holes.truncate(before);
            }
            fits
        }),
    }
}

/// The ends that a placeholder of a kind may have, longest first.
fn ends(kind: &str, text: &str) -> Vec<usize> {
    let run = |fits: fn(char) -> bool| text.find(|c| !fits(c)).unwrap_or(text.len());
    match kind {
        "" => {
            let end = text[..run(|c| c.is_ascii_digit() || c == '.')].trim_end_matches('.').len();
            if text.starts_with('.') || end == 0 { vec![] } else { vec![end] }
        }
        "word" => Some(run(|c| c.is_ascii_lowercase())).filter(|&end| end > 0).into_iter().collect(),
        "rest" => Some(text.len()).filter(|&end| end > 0).into_iter().collect(),
        words => words.split('|').filter(|word| text.starts_with(*word)).map(str::len).collect(),
    }
}
