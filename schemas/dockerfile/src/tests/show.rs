//! Prints a file and the result of parsing it, for snapshots.

use std::fmt::Write as _;

use super::super::*;

/// The text, then its stages or errors.
pub(super) fn show(text: &str, options: &Options<'_>) -> String {
    let mut out: String = text
        .lines()
        .map(|line| format!("| {}\n", line.replace('\t', "→").replace('\u{feff}', "<BOM>")))
        .collect();
    match read(text.as_bytes(), options) {
        Ok(build) => {
            for (index, stage) in build.stages.iter().enumerate() {
                let name = stage.name.as_deref().map(|name| format!(" AS {name}")).unwrap_or_default();
                let _ = writeln!(out, "{index}: FROM {}{name}", from(&stage.from));
                let mut variables = Variables::new(&build, [("BASE".to_owned(), "base".to_owned())].into());
                for instruction in &stage.instructions {
                    let _ = writeln!(out, "   {}", kind(&instruction.kind, &mut variables));
                }
            }
            assert_eq!(build.target + 1, build.stages.len());
            build.remarks.iter().for_each(|remark| out += &problem(text, remark, "remark"));
        }
        Err(Refusals(found)) => found.iter().for_each(|refusal| out += &problem(text, refusal, "refused")),
    }
    out
}

fn problem(text: &str, refusal: &Refusal, what: &str) -> String {
    let line = text[..refusal.span.start].matches('\n').count() + 1;
    let help = refusal.help.as_ref().map(|help| format!("\n    = {help}")).unwrap_or_default();
    format!("{what} {line} {:?}: {}{help}\n", &text[refusal.span.clone()], refusal.message)
}

fn from(from: &ImageOrStage) -> String {
    match from {
        ImageOrStage::Stage(index) => format!("stage {index}"),
        ImageOrStage::Image { reference, platform: None, .. } => format!("image {reference}"),
        ImageOrStage::Image { reference, platform: Some(platform), .. } => {
            format!("image {reference} ({platform})")
        }
        ImageOrStage::Scratch => "nothing".to_owned(),
    }
}

fn kind(kind: &Kind, variables: &mut Variables<'_>) -> String {
    let word = |word: &Word| variables.expand(word).unwrap_or_else(|refusal| format!("!{refusal}"));
    let words = |words: &[Word]| {
        words.iter().flat_map(|word| variables.expand_words(word).unwrap()).collect::<Vec<_>>()
    };
    match kind {
        Kind::Arg(args) => {
            variables.declare(args).unwrap();
            format!("ARG {:?}", variables.args())
        }
        Kind::Env(pairs) => format!("ENV {:?}", variables.set(pairs).unwrap()),
        Kind::Label(pairs) => format!("LABEL {:?}", variables.pairs(pairs).unwrap()),
        Kind::Run(run) => {
            let mut out = format!("RUN {:?}", run.command);
            if run.network != Network::Default {
                let _ = write!(out, " network {:?}", run.network);
            }
            for mount in &run.mounts {
                let mount = &variables.mount(mount).unwrap_or_else(|_| mount.clone());
                let target = mount.target.as_ref().map(word);
                let mode = if mount.read_only { "ro" } else { "rw" };
                let _ = write!(out, "\n       {} {target:?} {mode}", mount_kind(&mount.kind));
            }
            out
        }
        Kind::Copy(copy) => format!("COPY {}", copied(copy, variables)),
        Kind::Add(copy) => format!("ADD {}", copied(copy, variables)),
        Kind::Workdir(path) => format!("WORKDIR {}", word(path)),
        Kind::User(user) => format!("USER {}", word(user)),
        Kind::Expose(ports) => format!("EXPOSE {:?}", words(ports)),
        Kind::Volume(paths) => format!("VOLUME {:?}", paths.iter().map(word).collect::<Vec<_>>()),
        Kind::Stopsignal(signal) => format!("STOPSIGNAL {}", word(signal)),
        other => format!("{other:?}"),
    }
}

fn mount_kind(kind: &MountKind) -> String {
    let text = |word: &Option<Word>| word.as_ref().map(|word| word.text.clone());
    match kind {
        MountKind::Bind { from: source, source: path } => {
            format!("bind {:?} of {}", text(path), source.as_ref().map_or("the context".to_owned(), from))
        }
        MountKind::Cache { id, sharing, mode, uid, gid, .. } => {
            format!("cache {:?} {sharing:?} {mode:?} {uid:?} {gid:?}", text(id))
        }
        MountKind::Secret { id, env, required, mode, .. } => {
            format!("secret {} {env:?} {required} {mode:?}", id.text)
        }
        MountKind::Ssh { id, required, mode, uid, gid } => {
            format!("ssh {:?} {required} {mode:?} {uid:?} {gid:?}", text(id))
        }
        MountKind::Tmpfs { size } => format!("tmpfs {size:?}"),
    }
}

fn copied(copy: &Copy, variables: &Variables<'_>) -> String {
    let mut out = String::new();
    for source in &copy.sources {
        let _ = match source {
            Source::Path(word) => write!(out, "{:?} ", variables.expand(word).unwrap()),
            Source::Heredoc(heredoc) => {
                write!(out, "<<{} {:?} ", heredoc.name, variables.expand_heredoc(heredoc).unwrap())
            }
        };
    }
    let _ = write!(out, "to {:?}", variables.expand(&copy.target).unwrap());
    let mut more = |what: &str, word: &Option<Word>| {
        if let Some(word) = word {
            let _ = write!(out, " {what} {:?}", variables.expand(word).unwrap());
        }
    };
    more("chown", &copy.chown);
    more("chmod", &copy.chmod);
    more("checksum", &copy.checksum);
    copy.exclude.iter().for_each(|word| more("exclude", &Some(word.clone())));
    if let Some(source) = &copy.from {
        let _ = write!(out, " from {}", from(source));
    }
    for (what, yes) in [
        ("parents", copy.parents),
        ("link", copy.link),
        ("unpack", copy.unpack == Some(true)),
        ("keep-git-dir", copy.keep_git_dir == Some(true)),
    ] {
        if yes {
            let _ = write!(out, " {what}");
        }
    }
    out
}
