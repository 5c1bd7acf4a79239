//! Which names the expressions of a text use.

use std::collections::BTreeSet;

/// Names by scope: `params.lr` is `("params", "lr")`; a scope used as a whole is `("params", "*")`.
pub(super) type NameSet = BTreeSet<(String, String)>;

/// Adds the names that the expressions `${{ … }}` of a text use.
pub(super) fn collect(text: &str, used: &mut NameSet) {
    let mut rest = text;
    while let Some(start) = rest.find("${{") {
        let inside = &rest[start + 3..];
        let end = inside.find("}}").unwrap_or(inside.len());
        expression(&inside[..end], used);
        rest = &inside[end..];
    }
}

/// Reads names and the dots and brackets after them; strings of the expression are skipped.
fn expression(text: &str, used: &mut NameSet) {
    let mut chars = text.char_indices().peekable();
    let mut previous = ' ';
    while let Some((start, c)) = chars.next() {
        if c == '\'' || c == '"' {
            while chars.next().is_some_and(|(_, next)| next != c) {}
        } else if c.is_alphabetic() || c == '_' {
            while chars.next_if(|&(_, c)| c.is_alphanumeric() || c == '_').is_some() {}
            let end = chars.peek().map_or(text.len(), |&(at, _)| at);
            if previous != '.' {
                member(&text[start..end], text[end..].trim_start(), used);
            }
        }
        if !c.is_whitespace() {
            previous = c;
        }
    }
}

/// Notes `scope.name`, `scope["name"]`, or the scope alone.
fn member(scope: &str, rest: &str, used: &mut NameSet) {
    let mut add = |name: &str| used.insert((scope.to_owned(), name.to_owned()));
    if let Some(name) = rest.strip_prefix('.') {
        let name = name.trim_start();
        let run = |fits: fn(char) -> bool| &name[..name.find(|c| !fits(c)).unwrap_or(name.len())];
        // `a-b` is one name where a name may hold a dash, and a subtraction elsewhere: both count as used.
        add(run(|c| c.is_alphanumeric() || c == '_'));
        add(run(|c| c.is_alphanumeric() || c == '_' || c == '-'));
        return;
    }
    let quoted = rest.strip_prefix('[').map(str::trim_start).and_then(|inside| {
        let quote = inside.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        inside[1..].split(quote).next()
    });
    add(quoted.unwrap_or("*"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_expressions_alone() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let mut used = NameSet::new();
            collect(text, &mut used);
            let expected: NameSet =
                expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            assert_eq!(used, expected, "{text}");
        };
        check("plain params.a", &[]);
        check("x ${{ params.a }} ${{params.b}}", &[("params", "a"), ("params", "b")]);
        check("${{ secrets.my-key }}", &[("secrets", "my"), ("secrets", "my-key"), ("key", "*")]);
        check("${{ params['a b'] | sh }}", &[("params", "a b"), ("sh", "*")]);
        check("${{ data.imagenet.mount }}", &[("data", "imagenet")]);
        check("${{ 'params.a' }}", &[]);
        check("${{ params.a * 2 + args.b }}", &[("params", "a"), ("args", "b")]);
        check("${{ params }}", &[("params", "*")]);
        check("${{ 名.前 }} ${{ params.a", &[("params", "a"), ("名", "前")]);
    }
}
