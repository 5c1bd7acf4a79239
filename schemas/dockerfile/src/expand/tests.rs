use super::*;

fn lookup(name: &str) -> Option<String> {
    Some(match name {
        "A" => "one".to_owned(),
        "E" => String::new(),
        "F" => "dir/file.tar.gz".to_owned(),
        "W" => "two words".to_owned(),
        "Ü" => "umlaut".to_owned(),
        _ => return None,
    })
}

/// The expansion of each text, as in BuildKit's tests and reference.
#[test]
fn variables_and_quotes() {
    for (text, expected) in [
        ("plain", "plain"),
        ("$A", "one"),
        ("${A}x$A-", "onexone-"),
        ("$U|${U}|$E", "||"),
        ("${A:-d} ${U:-d} ${E:-d} ${E-d}", "one d d "),
        ("${A:+s} ${U:+s} ${E:+s} ${E+s}", "s   s"),
        ("${U:-$A} ${U:-${E:-deep}} ${U:-\"a b\"}", "one deep a b"),
        ("${A:?why} ${E?why}", "one "),
        ("${F#*/} ${F##*.} ${F%.*} ${F%%.*} ${F%/*}", "file.tar.gz gz dir/file.tar dir/file dir"),
        ("${F#x} ${F%x} ${F#*} ${F##*} ${F%%*}", "dir/file.tar.gz dir/file.tar.gz dir/file.tar.gz  "),
        ("${F/file/x} ${F/\\//-} ${F//r/R} ${F/*./}", "dir/x.tar.gz dir-file.tar.gz diR/file.taR.gz gz"),
        ("${F//./$A}", "dir/fileonetaronegz"),
        ("${F/./\\$1}", "dir/file\\$1tar.gz"),
        ("'$A' \"$A\" '\"' \"'\"", "$A one \" '"),
        ("a\"b c\"d", "ab cd"),
        (r"\$A \a \\ \'", r"$A a \ '"),
        (r#""\$A \" \\ \a""#, r#"$A " \ \a"#),
        ("$", "$"),
        ("a$ $. $/", "a$ $. $/"),
        ("$1 $12x $@ $#", " x  "),
        ("$Ü", "umlaut"),
        ("end\\", "end"),
        ("${A:-a}b}", "oneb}"),
    ] {
        assert_eq!(expand(text, '\\', &lookup).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn the_escape_character_can_be_another() {
    assert_eq!(expand(r"C:\x`$A", '`', &lookup).as_deref(), Ok(r"C:\x$A"));
}

#[test]
fn errors_are_reported() {
    for (text, expected) in [
        ("'a", "a single quote is not closed"),
        ("\"a", "a double quote is not closed"),
        ("${", "`${` needs a name: `${NAME}`"),
        ("${}", "`${` needs a name: `${NAME}`"),
        ("${A", "`${A` is not closed: a `}` is missing"),
        ("${A:-x", "`${` is not closed: a `}` is missing"),
        ("${A/x}", "`${` is not closed: a `/` is missing"),
        ("${A:}", "`${A:}` is not known"),
        ("${A^}", "`${A^` is not known"),
        ("${A:=x}", "`${A:=` is not known"),
        ("${U:?}", "`U`: has no value, or an empty one"),
        ("${E:?say why}", "`E`: say why"),
        ("${U?}", "`U`: has no value"),
        (r"${A#\n}", r"invalid escape `\n` in a pattern"),
    ] {
        assert_eq!(expand(text, '\\', &lookup), Err(expected.to_owned()), "{text}");
    }
    let deep = "${a:-".repeat(10_000);
    assert_eq!(expand(&deep, '\\', &lookup), Err("more than 64 `${` in one another".to_owned()));
}

#[test]
fn words_are_split_after_expansion() {
    for (text, expected) in [
        ("$W x", vec!["two", "words", "x"]),
        ("\"$W\" x", vec!["two words", "x"]),
        ("$U  $E", vec![]),
        (r"a\ b", vec!["a b"]),
    ] {
        assert_eq!(words(text, '\\', &lookup).unwrap(), expected, "{text}");
    }
}

#[test]
fn quotes_are_ordinary_characters_in_a_heredoc() {
    assert_eq!(heredoc("it's \"$A\" \\$A ${U:-'x'}\n", &lookup).as_deref(), Ok("it's \"one\" $A 'x'\n"));
}
