//! The name of a downloaded file: the last part of the URL's path, as with BuildKit; else what the server names.

use jobc_schema::percent;

/// The name where neither the URL nor the server has one.
const UNNAMED: &str = "download";

/// The longest name of a file (limits.h, `NAME_MAX`).
const MAX_NAME_BYTES: usize = 255;

/// The name of what a URL leads to; `disposition` is the header `Content-Disposition`.
pub(super) fn of(url: &str, disposition: Option<&str>) -> String {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    // A name that is not UTF-8 after decoding stays as written.
    last(&percent::decode(path).unwrap_or_else(|| path.to_owned()))
        .or_else(|| last(&parameter(disposition?)?))
        .unwrap_or_else(|| UNNAMED.to_owned())
}

/// The last part of a path, if it can be a file's name.
fn last(path: &str) -> Option<String> {
    let name = path.trim_end_matches('/').rsplit('/').next()?;
    let is_name = !matches!(name, "" | "." | "..") && name.len() <= MAX_NAME_BYTES && !name.contains('\0');
    is_name.then(|| name.to_owned())
}

/// `filename` of `Content-Disposition` (RFC 6266): a word or a quoted string.
fn parameter(header: &str) -> Option<String> {
    let lower = header.to_ascii_lowercase();
    let at = lower
        .match_indices("filename=")
        .map(|(at, _)| at)
        .find(|at| lower[..*at].trim_end().ends_with(';'))?;
    let value = &header[at + "filename=".len()..];
    let Some(quoted) = value.strip_prefix('"') else {
        return value.split([';', ' ']).next().map(str::to_owned);
    };
    let mut text = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_names_the_file_else_the_server() {
        let check = |url: &str, disposition: Option<&str>, expected: &str| {
            assert_eq!(of(url, disposition), expected, "{url} {disposition:?}");
        };
        check("https://h/a/b.tar.gz?x=1#y", Some("attachment; filename=z"), "b.tar.gz");
        check("https://h/a%20b/", None, "a b");
        check("https://h/a%2Fb", None, "b");
        check("https://h/%2e%2e", None, "download");
        check("https://h", Some("attachment; filename=\"a \\\"b\\\".txt\"; size=1"), "a \"b\".txt");
        check("https://h/", Some("attachment; filename=../../etc/passwd"), "passwd");
        check("https://h/?a", Some("inline; xfilename=a"), "download");
        check("https://h/%zz%ff", None, "%zz%ff");
    }
}
