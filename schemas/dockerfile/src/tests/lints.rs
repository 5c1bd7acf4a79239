//! Rules of `docker build --check`: files, and the findings in them.

use std::fmt::Write as _;

use super::options;
use crate::ignore::Ignore;
use crate::{Inspection, Options, Refusal, ignored_sources, inspect, undefined_variables};

/// Findings as `LINE RULE "text": message`, with the replacement of a fix.
fn show(text: &str, found: &[Refusal], severity: &str) -> String {
    let mut out = String::new();
    for refusal in found {
        let line = text[..refusal.span.start].matches('\n').count() + 1;
        let rule = refusal.rule.lint().map_or("-", crate::Lint::name);
        let at = &text[refusal.span.clone()];
        let _ = writeln!(out, "{severity} {line} {rule} {at:?}: {}", refusal.message);
        if let Some(help) = &refusal.help {
            let _ = writeln!(out, "    = {help}");
        }
        if let Some(near) = &refusal.near {
            let _ = writeln!(out, "    > {near:?}");
        }
    }
    out
}

fn check_with(text: &str, args: &[(&str, &str)]) -> String {
    let args: Vec<(String, String)> = args.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect();
    let Inspection { refusals, remarks, .. } =
        inspect(text.as_bytes(), &Options { args: &args, ..options(None) });
    let shown: String = text.lines().map(|line| format!("| {line}\n")).collect();
    format!("{shown}{}{}\n", show(text, &refusals, "error"), show(text, &remarks, "remark"))
}

fn check(texts: &[&str]) -> String {
    texts.iter().map(|text| check_with(text, &[])).collect()
}

#[test]
fn names_and_keywords() {
    insta::assert_snapshot!(check(&[
        "FROM a AS Build\nFROM b as test\nfrom c AS x\nfrom Build\nrun x\n",
        "from a as b\nrun x\nRUN y\nRun z\n",
        "FROM a AS scratch\nFROM b AS Context\nFROM c AS d\nFROM e AS d\n",
        "FROM a as b\nRUN x\n",
    ]));
}

#[test]
fn platforms() {
    insta::assert_snapshot!(check(&[
        "FROM --platform=$TARGETPLATFORM a\nFROM --platform=${TARGETPLATFORM} a\n",
        "FROM --platform=linux/amd64 a\nFROM --platform=linux/arm64 a AS base-arm64\nFROM --platform=$BUILDPLATFORM a\n",
    ]));
}

#[test]
fn forms_of_instructions() {
    insta::assert_snapshot!(check(&[
        "FROM a\nCMD python main.py\nENTRYPOINT exec x\n",
        "FROM a AS b\nSHELL [\"/bin/bash\", \"-c\"]\nCMD x\nFROM b\nENTRYPOINT y\n",
        "FROM a\nENV A b c\nENV B \"b c\"\nLABEL c d\nENV D=1\nENV A $D\nENV E x \\\n  y\n",
        "FROM a\nMAINTAINER me <me@x>\nMAINTAINER \"me\"\n",
        "FROM a\nCMD [\"x\"]\nHEALTHCHECK NONE\nCMD [\"y\"]\nHEALTHCHECK CMD x\nFROM b\nCMD [\"z\"]\n",
        "FROM a AS x\nWORKDIR app\nWORKDIR sub\nFROM x\nWORKDIR more\nFROM b\nWORKDIR $DIR/x\nFROM scratch\nWORKDIR c\nFROM d\nWORKDIR C:\\app\n",
        "FROM a\nEXPOSE 80/TCP 127.0.0.1:8080:81 82:83/udp 84/udp\n",
        "FROM a\nRUN x \\\n\n  y\n",
        "FROM a\nENV API_TOKEN=abc TOKEN_FILE=/run/x KEY=1\nARG DB_PASSWORD=x DB_SECRET\n",
    ]));
}

#[test]
fn variables_without_a_value() {
    insta::assert_snapshot!(check(&[
        // An argument before the first stage, and one that is declared too late.
        "ARG VERSION=1\nFROM debian:12\nWORKDIR /app-$VERSION\nCOPY x $LATER\nARG LATER=1\nENV Y=$LATER\n",
        // The base image may define it.
        "ARG PYTHON_VERSION=3\nFROM python:$PYTHON_VERSION\nENV A=$PYTHON_VERSION PATH=/x:$PATH HOME=$HOME\n",
        // In a stage from scratch, all variables are known.
        "FROM scratch\nENV A=$B\nENV C=$A D=${E:-x} F=${G}\nUSER $PATH\n",
        "FROM a AS b\nARG ONE=1\nENV TWO=2\nFROM b\nENV X=$ONE Y=$TWO\nLABEL z=$TARGETARCH\n",
        "FROM a\nARG MIRROR=x\nENV A=$MIROR\nCOPY --chown=$OWNER x y\nRUN --mount=type=bind,source=$MIRRORS,target=/y x\n",
    ]));
}

#[test]
fn variables_of_a_known_base() {
    let text = "FROM a:1 AS b\nENV A=$KNOWN B=$OTHER\nFROM b\nENV C=$B D=$OTHER\n";
    let file = inspect(text.as_bytes(), &options(None));
    let found = undefined_variables(&file, &|image, _| {
        assert_eq!(image, "a:1");
        Some(vec!["KNOWN".to_owned()])
    });
    insta::assert_snapshot!(show(text, &found, "remark"));
    assert!(undefined_variables(&file, &|_, _| None).is_empty());
}

#[test]
fn images_that_depend_on_arguments() {
    let text = "ARG TAG\nARG OK=12\nFROM debian:$TAG\nFROM debian:$OK\nFROM debian${TAG:+:}$TAG\n";
    insta::assert_snapshot!(check_with(text, &[("TAG", "12")]) + &check_with(text, &[]));
}

#[test]
fn directives_select_rules() {
    insta::assert_snapshot!(check(&[
        "# check=skip=StageNameCasing,MaintainerDeprecated\nFROM a AS B\nMAINTAINER me\nCMD x\n",
        "# check=skip=all\nFROM a AS B\nRUN x \\\n\n  y\n",
        "# check=error=true\nFROM a AS B\n",
        "# check=error=true;skip=StageNameCasing\nFROM a AS B\n",
        "# check=skipped=x\nFROM a\n",
        "# check=experimental=InvalidDefinitionDescription\n# tag the version\nARG TAG=1\n# TAGS of it\nARG TAGS=1\n\n# builds it\nFROM a AS b\n# about nothing\n\nARG X\n",
        "# tag the version\nARG TAG=1\nFROM a\n",
    ]));
}

#[test]
fn ignored_files() {
    let ignore = Ignore::read("*.log\nbuild\nout\n!out/keep\nsecret\n").unwrap();
    let text = "FROM a\nARG D=build\nCOPY a.log $D build/x /x/\nCOPY out *.log . ./secret/ $UNKNOWN /y/\nADD https://x/a.log /\nCOPY --from=b:1 build /\n";
    let file = inspect(text.as_bytes(), &options(None));
    insta::assert_snapshot!(show(text, &ignored_sources(&file, &ignore), "remark"));
    assert!(ignored_sources(&file, &Ignore::default()).is_empty());
}
