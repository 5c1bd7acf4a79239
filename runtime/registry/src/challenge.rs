//! The authentication that a registry requires: the header `WWW-Authenticate` (RFC 9110, section 11.6.1).

/// One way to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// `basic`, `bearer` or another, in lower case.
    pub(crate) scheme: String,
    /// Its parameters, names in lower case.
    pub(crate) parameters: Vec<(String, String)>,
}

impl Challenge {
    /// The value of a parameter; nothing if it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// The challenges of a header's value, in their order. What cannot be read ends the list.
pub(crate) fn parse(header: &str) -> Vec<Challenge> {
    let mut found: Vec<Challenge> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            return found;
        }
        let word = word.to_ascii_lowercase();
        // A name with a value belongs to the preceding scheme; a token alone is the next scheme.
        match (after.trim_start().strip_prefix('='), found.last_mut()) {
            (Some(after), Some(challenge)) => {
                let Some((value, after)) = value(after.trim_start()) else { return found };
                challenge.parameters.push((word, value));
                rest = after;
            }
            (Some(_), None) => return found,
            (None, _) => {
                found.push(Challenge { scheme: word, parameters: Vec::new() });
                rest = after;
            }
        }
    }
}

/// A quoted string or a word, and what follows it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut out = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((out, &quoted[at + 1..])),
            '\\' => out.push(characters.next()?.1),
            c => out.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str) -> String {
        let line = |challenge: Challenge| {
            let parameters = challenge.parameters.iter().map(|(name, value)| format!(" {name}=<{value}>"));
            challenge.scheme + &parameters.collect::<String>()
        };
        parse(header).into_iter().map(line).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn several_challenges_stand_in_one_header() {
        assert_eq!(
            check(
                r#"Bearer realm="https://auth.example/token",service="r",scope="repository:a/b:pull,push""#
            ),
            "bearer realm=<https://auth.example/token> service=<r> scope=<repository:a/b:pull,push>"
        );
        assert_eq!(
            check(r#"Basic realm="a \"b\", c" , BEARER Realm=x"#),
            r#"basic realm=<a "b", c> | bearer realm=<x>"#
        );
        assert_eq!(check("Negotiate, Basic"), "negotiate | basic");
        assert_eq!(check("Basic realm = x"), "basic realm=<x>");
    }

    #[test]
    fn an_unreadable_challenge_ends_the_list() {
        assert_eq!(check(""), "");
        assert_eq!(check("realm=x"), "");
        assert_eq!(check(r#"Bearer realm="https://never.ends"#), "bearer");
        assert_eq!(check(r#"Bearer realm="x\"#), "bearer");
    }
}
