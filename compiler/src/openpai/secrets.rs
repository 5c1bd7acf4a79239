//! Secrets in commands: OpenPAI substitutes `<% $secrets.x %>`, other targets set a variable.

/// Secrets by variable, in the order of first use.
pub type Variables = indexmap::IndexMap<String, String>;

/// The variable of a secret.
pub fn variable_of(secret: &str) -> String {
    let upper = secret.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("SECRET_{upper}")
}

/// Replaces the templates `<% $secrets.NAME %>` in a script with variables; returns it with the variables' secrets.
///
/// OpenPAI substitutes a template anywhere; the shell expands a variable only outside single quotes, and
/// splits it unless it is quoted. So the text around a template is checked: single quotes are closed around it, and
/// an unquoted template gets double quotes.
pub fn with_variables(script: &str, used: &mut Variables) -> String {
    let mut out = String::with_capacity(script.len());
    let mut quote = Quote::None;
    let mut rest = script;
    while let Some((start, end, name)) = next(rest) {
        quote = quote.behind(&rest[..start]);
        out.push_str(&rest[..start]);
        let variable = variable_of(name);
        match quote {
            Quote::None => out.push_str(&format!("\"${{{variable}}}\"")),
            Quote::Double => out.push_str(&format!("${{{variable}}}")),
            Quote::Single => out.push_str(&format!("'\"${{{variable}}}\"'")),
        }
        used.insert(variable, name.to_owned());
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// The range of the next template of a secret, and the secret's name.
fn next(text: &str) -> Option<(usize, usize, &str)> {
    let mut from = 0;
    while let Some(start) = text[from..].find("<%").map(|at| from + at) {
        let inner = &text[start + 2..];
        let length = inner.find("%>")?;
        let end = start + 2 + length + 2;
        if let Some(name) = inner[..length].trim().strip_prefix("$secrets.") {
            return Some((start, end, name.trim()));
        }
        from = end;
    }
    None
}

/// The quoting at a position in a shell script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

impl Quote {
    /// The quoting after a text that begins in this state.
    fn behind(self, text: &str) -> Self {
        let mut quote = self;
        let mut before = ' ';
        let mut letters = text.chars();
        while let Some(c) = letters.next() {
            quote = match (quote, c) {
                (Self::None | Self::Double, '\\') => {
                    letters.next();
                    quote
                }
                // Quotes in a comment do not count: `# don't`.
                (Self::None, '#') if before.is_whitespace() => {
                    letters.by_ref().find(|&c| c == '\n');
                    quote
                }
                (Self::None, '\'') => Self::Single,
                (Self::None, '"') => Self::Double,
                (Self::Single, '\'') | (Self::Double, '"') => Self::None,
                _ => quote,
            };
            before = c;
        }
        quote
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_replaced_with_variables() {
        let check = |script: &str, expected: &str| {
            let mut used = Variables::new();
            assert_eq!(with_variables(script, &mut used), expected, "{script}");
        };
        check("login <% $secrets.key %> x", "login \"${SECRET_KEY}\" x");
        check("login \"<%$secrets.key%>:x\"", "login \"${SECRET_KEY}:x\"");
        check("login 'a<% $secrets.my-key %>b'", "login 'a'\"${SECRET_MY_KEY}\"'b'");
        check("# don't\nlogin <% $secrets.k %>", "# don't\nlogin \"${SECRET_K}\"");
        check("a \\' <% $secrets.k %>", "a \\' \"${SECRET_K}\"");
        check(
            "echo ${#a} '<% $secrets.a %>' <% $secrets.b %>",
            "echo ${#a} ''\"${SECRET_A}\"'' \"${SECRET_B}\"",
        );
        check("echo <% $parameters.x %>", "echo <% $parameters.x %>");
    }
}
