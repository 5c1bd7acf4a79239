//! Glob patterns, by the rules of Go's `filepath.Match`: `*`, `?`, `[a-z]`, `[^a-z]`, and `\` before any of them.
//!
//! Each component of a source of `COPY` is such a pattern; `**` has no special meaning there.

/// A piece of a pattern that matches one or more characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// `*`.
    Star,
    /// `?`.
    One,
    /// A character.
    Literal(char),
    /// `[…]`: whether it is negated, and its ranges.
    Class(bool, Vec<(char, char)>),
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::One => true,
            Self::Literal(own) => *own == c,
            Self::Class(negated, ranges) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != *negated
            }
        }
    }
}

/// Whether a pattern matches a whole name; a [malformed](check) pattern matches nothing.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (Ok(tokens), name) = (tokens(pattern), name.chars().collect::<Vec<char>>()) else { return false };
    let (mut token, mut at) = (0, 0);
    // Where to resume if the rest does not match: the last star then matches one more character.
    let mut again = None;
    loop {
        match tokens.get(token) {
            Some(Token::Star) => {
                again = Some((token, at));
                token += 1;
                continue;
            }
            Some(other) if name.get(at).is_some_and(|c| other.takes(*c)) => {
                token += 1;
                at += 1;
                continue;
            }
            None if at == name.len() => return true,
            _ => {}
        }
        match again {
            Some((star, behind)) if behind < name.len() => {
                again = Some((star, behind + 1));
                (token, at) = (star + 1, behind + 1);
            }
            _ => return false,
        }
    }
}

/// Checks that a pattern is well-formed, or returns what is wrong.
pub fn check(pattern: &str) -> Result<(), String> {
    tokens(pattern).map(drop)
}

/// Whether a text contains special characters.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '\\'])
}

/// Parses a pattern.
pub(super) fn tokens(pattern: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        tokens.push(match c {
            '*' => Token::Star,
            '?' => Token::One,
            '\\' => Token::Literal(rest.next().ok_or_else(|| format!("`{pattern}` ends with `\\`"))?),
            '[' => {
                let open = || format!("a `[` of `{pattern}` is not closed, or has nothing in it");
                let negated = rest.next_if_eq(&'^').is_some();
                let mut ranges = Vec::new();
                loop {
                    if !ranges.is_empty() && rest.next_if_eq(&']').is_some() {
                        break;
                    }
                    let mut one = || match rest.next() {
                        None | Some('-' | ']') => Err(open()),
                        Some('\\') => rest.next().ok_or_else(open),
                        Some(c) => Ok(c),
                    };
                    let first = one()?;
                    let last = if rest.next_if_eq(&'-').is_some() {
                        match rest.next() {
                            None | Some('-' | ']') => return Err(open()),
                            Some('\\') => rest.next().ok_or_else(open)?,
                            Some(c) => c,
                        }
                    } else {
                        first
                    };
                    ranges.push((first, last));
                }
                Token::Class(negated, ranges)
            }
            c => Token::Literal(c),
        });
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of Go's own tests for `filepath.Match`, and ours.
    #[test]
    fn names_match_as_in_go() {
        for (pattern, name, expected) in [
            ("abc", "abc", true),
            ("*", "abc", true),
            ("*c", "abc", true),
            ("a*", "a", true),
            ("a*b*c*d*e*", "axbxcxdxe", true),
            ("a*b*c*d*e*", "axbxcxdxexxx", true),
            ("a*b?c*x", "abxbbxdbxebxczzx", true),
            ("a*b?c*x", "abxbbxdbxebxczzy", false),
            ("ab[c]", "abc", true),
            ("ab[b-d]", "abc", true),
            ("ab[e-g]", "abc", false),
            ("ab[^c]", "abc", false),
            ("ab[^e-g]", "abc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "ab", false),
            ("a?b", "a☺b", true),
            ("a[^a]b", "a☺b", true),
            ("a???b", "a☺b", false),
            ("[a-ζ]*", "α", true),
            ("*[a-ζ]", "A", false),
            ("[\\]a]", "]", true),
            ("[\\-]", "-", true),
            ("[x\\-]", "-", true),
            ("[\\-x]", "a", false),
            ("", "", true),
            ("", "a", false),
            ("**", "abc", true),
            ("*.tar.?z", "x.tar.gz", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        for bad in ["[]a]", "[-]", "[x-]", "[-x]", "[a-b-c]", "[", "[^", "[^bc", "a[", "a\\", "[a-"] {
            assert!(check(bad).is_err() && !matches(bad, "a"), "{bad}");
        }
    }

    #[test]
    fn many_stars_are_fast() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
        assert!(!matches(&format!("{}b", "a*".repeat(200)), &"a".repeat(2000)));
    }
}
