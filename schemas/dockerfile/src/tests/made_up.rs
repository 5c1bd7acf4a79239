//! Generated files: no input panics, and every span is in the file.

use proptest::prelude::*;

use super::super::*;

/// Pieces of Dockerfiles, and pieces that break them.
const PIECES: &[&str] = &[
    "FROM ",
    "a",
    " AS ",
    "RUN ",
    "COPY ",
    "ADD ",
    "ENV ",
    "ARG ",
    "ONBUILD ",
    "HEALTHCHECK ",
    "CMD ",
    "SHELL ",
    "LABEL ",
    "EXPOSE ",
    "VOLUME ",
    "--mount=",
    "type=cache",
    ",",
    "target=/x",
    "--from=",
    "--",
    "=",
    "0",
    "<<EOF",
    "<<-\"E\"",
    "EOF\n",
    "\\",
    "\\\n",
    "\n",
    "\n",
    "\n",
    "\r\n",
    " ",
    "\t",
    "\"",
    "'",
    "$",
    "${",
    "}",
    "${a:-",
    "#",
    "# escape=`\n",
    "`",
    "[",
    "]",
    "é",
    "\u{feff}",
    "\u{2003}",
    "/",
    "*",
    "..",
    "80/tcp",
    "[\"a\", \"b\"]",
];

/// Parses a file, and checks every span and word.
fn look(text: &str, target: Option<&str>) {
    let all = |list: &[Refusal]| {
        for refusal in list {
            assert!(text.get(refusal.span.clone()).is_some(), "{refusal:?} of {text:?}");
        }
    };
    let options = Options { target, ..super::options(None) };
    let build = match read(text.as_bytes(), &options) {
        Ok(build) => build,
        Err(Refusals(list)) => {
            assert!(!list.is_empty());
            return all(&list);
        }
    };
    all(&build.remarks);
    for (index, stage) in build.stages.iter().enumerate() {
        assert!(text.get(stage.span.clone()).is_some());
        assert!(!matches!(stage.from, ImageOrStage::Stage(before) if before >= index));
        let mut variables = Variables::new(&build, indexmap::IndexMap::new());
        for instruction in &stage.instructions {
            assert!(text.get(instruction.span.clone()).is_some());
            assert!(
                instruction
                    .sources()
                    .iter()
                    .all(|from| !matches!(from, ImageOrStage::Stage(before) if *before >= index))
            );
            match &instruction.kind {
                Kind::Arg(args) => drop(variables.declare(args)),
                Kind::Env(pairs) => drop(variables.set(pairs)),
                Kind::Onbuild(text) => {
                    trigger(text, &build, index).ok();
                }
                Kind::Copy(copy) | Kind::Add(copy) => {
                    for source in &copy.sources {
                        match source {
                            Source::Path(word) => {
                                assert!(text.get(word.span.clone()).is_some());
                                variables.expand(word).ok();
                            }
                            Source::Heredoc(heredoc) => drop(variables.expand_heredoc(heredoc)),
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_in_any_order(picks in prop::collection::vec(0..PIECES.len(), 0..40), begun in any::<bool>()) {
        let mut text = if begun { "FROM a AS x\nFROM b\n".to_owned() } else { String::new() };
        text.extend(picks.into_iter().map(|pick| PIECES[pick]));
        look(&text, None);
        look(&text, Some("x"));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, &super::options(None));
        look(&String::from_utf8_lossy(&bytes), None);
        let _ = ignore::Ignore::read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn patterns_never_panic(pattern in "[a*?\\[\\]^\\-\\\\/.!]{0,12}", path in "[a-c/.\\-]{0,12}") {
        glob::matches(&pattern, &path);
        if let Ok(ignore) = ignore::Ignore::of([pattern.as_str()]) {
            ignore.excludes(std::path::Path::new(&path));
            ignore.enters(std::path::Path::new(&path));
        }
    }
}
