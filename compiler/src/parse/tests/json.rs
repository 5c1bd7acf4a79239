use std::fmt::Write as _;

use super::{check, check_spans};

#[test]
fn every_key_and_value_has_its_byte_range() {
    let texts = [
        "\u{feff}{\"a\": [1, -2.50, true, null], // one\n /* two */ \"b\": {\"c\": \"x\\n\\u00e9\\ud83d\\ude00\"}}\n",
        "[]",
        " \"// no comment\"\r\n",
    ];
    insta::assert_snapshot!(check_spans("job.json", &texts));
}

#[test]
fn mistakes() {
    let texts = [
        "{\"jobName\":\"restnet\", \\\n \"taskRoles\":[{\"taskNumber\":1,\"command\":\"python train.py \\\n   --batch_size=256\"}, ...]}",
        "{\"a\": 1, ...}",
        "{\"a\": [...], \"b\": […], \"c\": ..., \"d\": {\"x\": 1 ...}, …\n \"e\": 2}",
        "{\"a\": 1, \"b\": [1, 2,],}",
        "{'a': 'it\\'s \"x\"', b: None, \"c\": True, \"d\": word}",
        "{“a”: “b”}",
        "{\"a\": 1 \"b\": 2\n \"c\": [1 2]}",
        "{\"a\": 1,, \"b\": 2}",
        "{\"a\": 1, \"b\": 2, \"a\": 3}",
        "{\"a\": 007, \"b\": +1, \"c\": .5, \"d\": 0x1F, \"e\": 1e999, \"f\": 12h, \"g\": 99999999999999999999}",
        "{\"a\": \"x\n y\", \"b\": \"tab\there\"}",
        "{\"a\": \"x,\n \"b\": 1}",
        "{\"a\": \"x}",
        "{\"a\": \"C:\\dir\\ud800\\u12\"}",
        "{\"a\": [1, 2}",
        "{\"a\": [1, 2",
        "{\"a\" 1}",
        "{\"a\": }",
        "{\"a\": @}",
        "{\"a\": 1}}",
        "{\"a\": 1} {\"b\": 2}",
        "{\"a\": 1} # done",
        "{/* open \"a\": 1}",
        "{1: 2, [3]: 4}",
        "",
        " // nothing\n",
        "null",
        "version: 1\n",
    ];
    insta::assert_snapshot!(check("job.json", &texts));
}

#[test]
fn the_format_depends_on_the_name_and_the_text() {
    let text =
        ["{\"a\": 1, // why\n \"b\": 2}", "{\"a\": yes}", "{a: 1}", "{\"jobName\":\"x\", \\\n \"b\": 1}"];
    let mut out = String::new();
    for path in ["job.yaml", "-", "job.json"] {
        let _ = write!(out, "# {path}\n\n{}", check(path, &text));
    }
    insta::assert_snapshot!(out);
}
