use super::{check, check_spans};

#[test]
fn every_key_and_value_has_its_byte_range() {
    let texts = [
        "a: 1\nb: [x, 'y', \"z\"]\nc: {d: null, e: }\n",
        "roles:\n  train:\n    run: |\n      one\n      two\n\n\n# a comment\nnext:\n- 1\n- two: 2\n\n# end\n",
        "a: >-  # folded | really\n  x\n  y\n\n  # text\n\n # comment\nb: |2\n   indented\nc:\n",
        "- |\n  x\n- >\n\n  y # | z\n\n- 3.10\n",
        "a: &x\n  b: 1\nc: *x\nd: &y hello\ne: [*y, *y]\n",
        "\u{feff}a: 1\r\nb: |\r\n  text\r\n\r\n名前: 値 # c\r\n",
        "? a\n: b\n\"c d\": plain text\n  over lines\n",
        "a: |\nb: ''\nc: !!str 12\nd: !!int \n  7\n",
        "---\na: ~\n...\n",
    ];
    insta::assert_snapshot!(check_spans("job.yaml", &texts));
}

#[test]
fn schema() {
    let texts = [
        "a: 2\nb: 2\na: 3\nc: {x: 1, x: 2}\n",
        "a: 0777\nb: 00\nc: -08\nd: [0o17, 0x1f, 1e3, 007]\ne: \"0777\"\n",
        "a: .inf\nb: -.INF\nc: .nan\nd: 18446744073709551616\ne: 1e400\nf: 18446744073709551615\n",
        "a: yes\nb: [NO, on, n, 1_000, 12:30, 2026-11-20]\non: 1\ny: 2\n'yes': \"no\"\n",
        "1: a\ntrue: b\n~: c\n1.5: d\n0777: e\n: f\n\"2\": g\n",
        "[a, b]: c\n? {x: 1}\n: d\ne: {{ params.x }}\n",
        "a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  x: 3\n  '<<': kept\n",
        "a: !Ref x\nb: !!str 12\nc: !!int 12\nd: !!int x\ne: !!map [1]\nf: !!float 3\ng: !!binary aGk=\nh: ! x\n",
        "a: !e!x 1\n",
        "a: &name 1\nb: *nane\nc: &c [*c]\n&d e: 1\n*name : 2\n",
        "a: 1\n---\nb: 2\n",
        "a: 1\n---\n",
        "%YAML 1.1\n---\na: 1\n",
        "%YAML 1.2\n---\na: 1\n",
        "",
        "# only\n\n# comments\n",
        "---\n",
        "~\n",
        "just text\n",
    ];
    insta::assert_snapshot!(check("job.yaml", &texts));
}

#[test]
fn syntax() {
    let texts = [
        "a:\n\tb: 1\n\tc: 2\n",
        "a:\n  b: 1\n\tc: 1\n",
        "a:\n  - b\n\t- c\n",
        "a: [${{ x }}, b]\n",
        "a: {b: ${{ params.x }}, c: 1}\n",
        "a: {b: x-${{ params.x }}-y, c: 1}\n",
        "a: {b: ${{ f(\"x\") }}}\n",
        "a: [\n  \"${{ ok }}\",\n  ${{ x }}\n]\n",
        "a: ${{ x }}\nb: x${{ y }}z\n",
        "a: \"abc\nb: 1\n",
        "a: 1 # it's\nb: 'abc\nc: 1\nd: 2\n",
        "a: \"b\", c: \"d\ne: 1\n",
        "a: 'b\n\n",
        "a: [1, 2\nb: 3\n",
        "a: {b: 1\nc: 3\n",
        "a: {b: [1, 2}\n",
        "a: [1, [2, 3]\n",
        "a: [1}\n",
        "a: ]\n",
        "key: [a, b]]\n",
        "a: {b: 1,\n    c: 2\n    d: 3}\n",
        "a: [\"x\" \"y\"]\n",
        "a: {b: 1,, c: 2}\n",
        "a: b: c\n",
        "run: echo \"a: b\": c # why\n",
        "name:foo\nversion: 1\n",
        "version: 1\nname:foo\nrun: x\n",
        "a:\n  b:1\n  c: 2\n",
        "resources:\n  cpu:4\n  memory:8GiB\nimage:\n  nvidia/cuda:12\n",
        "resources: {cpu:4, memory: 8GiB}\n",
        "ports: {http://x, a}\n",
        "a: \n  - b\n  -c\n",
        "a: 1\nb\n",
        "a: b\n  c: d\n",
        "a:\n    b: 1\n  c: 2\n",
        "a:\n  - b\n c: 1\n",
        "a: |\n  x\n y\n",
        "- a\nb: 1\n",
        "a: - b\n",
        "a: @x # c\n",
        "a: `x \"y\"`\n",
        "a: \"C:\\path\"\n",
        "a: \"ok \\t \\x4\"\n",
        "c: 'it's'\n",
        "a: x #c\n  y\n",
        "a: *\n",
        "files: *.py\n",
        "{a: 1}\nb\n",
        "a: \u{7}x\n",
    ];
    insta::assert_snapshot!(check("job.yaml", &texts));
}
