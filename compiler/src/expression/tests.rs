//! Splitting, names and marks, independent of job files.

use super::*;

#[test]
fn strings_are_split_at_expressions() {
    let check = |text: &str, codes: &[&str]| {
        let found: Vec<String> = expressions(text).iter().map(|e| e.code.to_owned()).collect();
        assert_eq!(found, codes, "{text}");
    };
    check("a ${{ b }} c ${{d}}", &[" b ", "d"]);
    check("${#a[@]} {{ x }} {% y %}", &[]);
    check("${{ '}}' }}x", &[" '}}' "]);
    check("${{ {'a': {'b': 1}} }}", &[" {'a': {'b': 1}} "]);
    check("${{ it's }} ${{ b }}", &[" it's ", " b "]);
    check("日本${{ 名 }}語", &[" 名 "]);
    assert_eq!(split("a ${{ b"), Err(UnclosedExpression { start: 2, number: 0 }));
    assert_eq!(split("${{ a }} ${{ b }"), Err(UnclosedExpression { start: 9, number: 1 }));
}

#[test]
fn names_are_found_without_evaluation() {
    let check = |code: &str, wanted: &[&str]| {
        let found: Vec<&str> = paths(code).iter().map(|path| &code[path.range.clone()]).collect();
        assert_eq!(found, wanted, "{code}");
    };
    check("params.lr * 2", &["params.lr"]);
    check("hosts.data-server[0]", &["hosts.data-server[0]"]);
    check("hosts['data-server'] [ 0 ].x", &["hosts['data-server'] [ 0 ].x"]);
    check(
        "ports.data-server.grpc-web[0] ~ hosts.a.b-c",
        &["ports.data-server.grpc-web[0]", "hosts.a.b", "c"],
    );
    check("params.a-1", &["params.a"]);
    check("a if b is not defined else c | join(d, e='x')", &["a", "b", "c", "d"]);
    check("range(n) | map('upper')", &["n"]);
    check("'params.x' ~ \"y\" ~ 1.5e3 ~ true", &[]);
    check("hosts.x[i].y", &["hosts.x", "i"]);
    check("x.lower() == y", &["x", "y"]);
    check("{'a': b, c: [d, e]}", &["b", "c", "d", "e"]);
    check("名.前", &["名.前"]);
}

#[test]
fn the_filter_sh_quotes_one_word() {
    let engine = Engine::new();
    let check = |code: &str, text: &str| {
        let value = engine.evaluate(code, &Names::default()).and_then(|value| value.text());
        assert_eq!(value.unwrap(), text, "{code}");
    };
    check("'plain-1.0' | sh", "plain-1.0");
    check("'' | sh", "''");
    check("\"it's $HOME\" | sh", r"'it'\''s $HOME'");
    check("'日本' | sh", "'日本'");
    check("['a', 'b c'] | sh", "a 'b c'");
    check("['a', 'b'] | join(':')", "a:b");
    check("{'a': [1, 'x']} | tojson", r#"{"a":[1,"x"]}"#);
}

#[test]
fn deep_nesting_is_an_error() {
    let engine = Engine::new();
    for part in ["(", "[", "-", "not ", "{1:", "1+", "1 if ", "'a'|", "a.", "1 if 1 else "] {
        let long = part.repeat(5000);
        assert!(engine.evaluate(&long, &Names::default()).is_err(), "{part}");
        // The longest expression allowed must not crash either.
        let longest = part.repeat(990 / part.len()) + "1";
        let _ = engine.check(&longest);
        let _ = engine.evaluate(&longest, &Names::default());
    }
}
