use std::fmt::Write as _;

use super::recover;
use crate::document::Node;

/// Prints the keys and values of a tree, each with the text at its span.
fn write(node: &Node, text: &str, indent: &str, out: &mut String) {
    for entry in node.entries() {
        let scalar = entry.value.to_scalar().map(|_| &text[entry.value.span.range()]).unwrap_or_default();
        let _ = writeln!(out, "{indent}{}: {scalar}", &text[entry.key_span.range()]);
        write(&entry.value, text, &format!("{indent}  "), out);
    }
    for item in node.items() {
        let _ = writeln!(out, "{indent}- {}", &text[item.span.range()].lines().next().unwrap_or_default());
    }
}

#[test]
fn all_but_the_broken_lines_are_recovered() {
    let check = |name: &str, text: &str| {
        let mut out = String::new();
        if let Some(found) = recover(text) {
            write(&found.document.root, text, "", &mut out);
            for broken in found.broken {
                let _ = writeln!(out, "not read: {:?}", &text[broken]);
            }
            let _ = write!(out, "{}", if found.has_gaps { "with gaps\n" } else { "" });
        }
        insta::assert_snapshot!(name, format!("{}\n----\n{}\n", text.trim_end(), out.trim_end()));
    };
    let job = "version: 1\nname: x\nparams: {lr: 0.1}\nroles:\n  prepare:\n    run: |\n      a: [\n      b\n  train:\n    needs: [prepare]\n    resources: {gpu: 1}\n    run: x\n";
    check("open_bracket_below", &job.replace("[prepare]", "[prepare"));
    check("open_bracket_above", &job.replace("name: x", "name: [x"));
    check("half_a_key", &job.replace("    needs: [prepare]\n", "    nee\n"));
    check("half_a_role", &format!("{job}  eval\n"));
    check("a_role_without_its_colon", &job.replace("  train:", "  train"));
    check("items", "image:\n  copy:\n  - from: a\n    to: [b\n  - from: c\n    to: d\n  from: e:1\n");
    check("wrong_indentation", &job.replace("    resources", "   resources"));
    check("nothing", "just words\n- a\n");
}
