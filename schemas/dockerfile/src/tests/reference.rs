//! Comparison with parse-dockerfile, a third-party parser.

use super::super::*;

/// Files that both accept, with the same number of stages and instructions.
const ACCEPTED: &[&str] = &[
    "FROM a\n",
    "FROM a AS b\nFROM b\nRUN x\n",
    "ARG A=1\nFROM a:$A\nARG A\nENV B=$A C='d e'\n",
    "# syntax=docker/dockerfile:1\nFROM --platform=linux/amd64 a\nRUN a \\\n # c\n b\n",
    "FROM a\nCOPY --from=b:1 --chown=1:2 x y z/\nADD [\"x\", \"y\"]\n",
    "FROM a\nCMD [\"a\", \"b\"]\nENTRYPOINT a b\nSHELL [\"/bin/sh\"]\nSTOPSIGNAL 9\nUSER a\nWORKDIR /\nVOLUME /a /b\nEXPOSE 1 2\n",
    "FROM a\nHEALTHCHECK --interval=5s CMD x\nHEALTHCHECK NONE\nONBUILD RUN x\nLABEL a=b\n",
    "FROM a\nRUN <<EOF\nRUN inside\nEOF\nRUN y\n",
    "FROM a\nCOPY <<A <<B /x/\n1\nA\n2\nB\nRUN z\n",
    "# escape=`\nFROM a\nRUN b `\n c\n",
    "FROM a\r\nRUN b \\\r\n c\r\n",
];

/// Files that both reject.
const REJECTED: &[&str] = &[
    "",
    "RUN x\n",
    "FROM a\nRUNN x\n",
    "FROM a\nFROM\n",
    "FROM a AS\n",
    "FROM a\nRUN <<EOF\n",
    "FROM a\nCOPY x\n",
    "FROM a\nHEALTHCHECK\n",
    "FROM a\nSHELL x\n",
];

#[test]
fn files_that_both_parsers_accept() {
    for text in ACCEPTED {
        let theirs = parse_dockerfile::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let theirs: Vec<usize> = theirs.stages().map(|stage| stage.instructions.len()).collect();
        // Each stage as the target, including those that the last one does not need.
        for (number, expected) in theirs.iter().enumerate() {
            let target = number.to_string();
            let build = read(text.as_bytes(), &super::options(Some(&target)))
                .unwrap_or_else(|refusals| panic!("{text:?}: {refusals:?}"));
            assert_eq!(build.stages[build.target].instructions.len(), *expected, "{text:?}");
        }
    }
}

#[test]
fn files_that_both_parsers_reject() {
    for text in REJECTED {
        assert!(parse_dockerfile::parse(text).is_err(), "{text:?}");
        assert!(read(text.as_bytes(), &super::options(None)).is_err(), "{text:?}");
    }
}

/// Why that parser is not used: files on which it differs from BuildKit.
#[test]
fn files_that_the_other_parser_parses_differently() {
    // An empty line in an instruction, which BuildKit ignores.
    let gap = "FROM a\nRUN x \\\n\n  y\n";
    assert_eq!(read(gap.as_bytes(), &super::options(None)).unwrap().stages[0].instructions.len(), 1);
    // Rejected by every builder.
    let text = "FROM a\nONBUILD FROM x\n";
    assert!(parse_dockerfile::parse(text).is_ok() && read(text.as_bytes(), &super::options(None)).is_err());
    // It reports only one of two errors.
    let two = "FROM a\nRUNN x\nCOPPY y\n";
    assert_eq!(read(two.as_bytes(), &super::options(None)).unwrap_err().0.len(), 2);
    assert_eq!(parse_dockerfile::parse(two).unwrap_err().to_string().lines().count(), 1);
}
