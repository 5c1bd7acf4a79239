use std::sync::Mutex;

use super::*;
use crate::progress::ignore_progress;
use jobc_dockerfile::{self, Options};

/// A store, a context, and the output of their builds.
struct Case {
    directory: tempfile::TempDir,
    store: Store,
}

/// A build's image and output.
struct BuildResult {
    descriptor: Descriptor,
    image: Image,
    /// Texts of the steps that were run.
    carried_out: Vec<String>,
    /// Lines of commands.
    output: Vec<String>,
}

/// The static busybox of this host, which is enough to run commands. `None` if it is not
/// installed, or if the tests do not run as root.
fn busybox() -> Option<PathBuf> {
    let path = PathBuf::from("/bin/busybox");
    if !path.is_file() {
        jobc_test_skip::skip("busybox-static");
        return None;
    }
    jobc_test_skip::is_root().then_some(path)
}

/// Begins a file system by busybox.
const BASE: &str = "FROM scratch AS base\nCOPY busybox /bin/busybox\nRUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\n";

impl Case {
    fn new() -> Option<Self> {
        let busybox = busybox()?;
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("images")).unwrap();
        let case = Self { directory, store };
        std::fs::create_dir(case.context()).unwrap();
        std::fs::copy(busybox, case.context().join("busybox")).unwrap();
        Some(case)
    }

    fn context(&self) -> PathBuf {
        self.directory.path().join("context")
    }

    fn file(&self, name: &str, content: &str) {
        let path = self.context().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn try_build(
        &self,
        text: &str,
        change: impl FnOnce(&mut Request<'_>),
    ) -> std::result::Result<BuildResult, BuildError> {
        let platform = Platform::here();
        let shown = platform.to_string();
        let options = Options { args: &[], target: None, platform: &shown, build_platform: &shown };
        let build = jobc_dockerfile::read(text.as_bytes(), &options).expect("a Dockerfile");
        let mut request = Request {
            build: &build,
            context: Some(self.context()),
            ignore: Ignore::default(),
            labels: IndexMap::new(),
            tags: Vec::new(),
            secrets: IndexMap::new(),
            no_cache: false,
            pull: false,
            epoch: None,
            platform,
            locked: IndexMap::new(),
            compression: Compression::Gzip,
            fetch: None,
            access: Access::default(),
            extras: Extras::default(),
        };
        change(&mut request);
        let on_progress = Mutex::new(Vec::new());
        let tell = |progress| on_progress.lock().unwrap().push(progress);
        let descriptor = super::build(&self.store, &request, &tell, &AtomicBool::new(false))?;
        let image = self.store.image(&descriptor, &request.platform).expect("an image");
        let on_progress = on_progress.into_inner().unwrap();
        let carried_out = on_progress.iter().filter_map(|on_progress| match on_progress {
            Progress::Step { text, cached: false, .. } => Some(text.clone()),
            _ => None,
        });
        let output = on_progress.iter().filter_map(|on_progress| match on_progress {
            Progress::Output { line, .. } => Some(String::from_utf8_lossy(line).into_owned()),
            _ => None,
        });
        Ok(BuildResult { carried_out: carried_out.collect(), output: output.collect(), descriptor, image })
    }

    fn build(&self, text: &str) -> BuildResult {
        self.try_build(text, |_| {}).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// The files of the image's tree that a command prints.
    fn seen(&self, built: &BuildResult, path: &str) -> Option<String> {
        let layers =
            unpack::layers(&self.store, &built.image, &ignore_progress, &AtomicBool::new(false)).unwrap();
        layers.iter().rev().find_map(|layer| std::fs::read_to_string(layer.join(path)).ok())
    }
}

#[test]
fn commands_see_what_earlier_steps_made() {
    let Some(case) = Case::new() else { return };
    case.file("greeting", "hello\n");
    let built = case.build(&format!(
        "{BASE}WORKDIR /work\nCOPY greeting .\nENV WHO=you\nRUN echo \"$(cat greeting) $WHO\" | tee said\n"
    ));
    assert_eq!(built.output, ["hello you"]);
    assert_eq!(case.seen(&built, "work/said").as_deref(), Some("hello you\n"));
    assert_eq!(built.image.config.config.working_dir, "/work");
}

#[test]
fn a_step_is_carried_out_again_when_what_it_takes_has_changed() {
    let Some(case) = Case::new() else { return };
    case.file("a", "1");
    case.file("b", "1");
    let text = format!("{BASE}COPY a /a\nRUN cat /a > /c\nCOPY b /b\nLABEL x=y\nRUN cat /b >> /c\n");
    let first = case.build(&text);
    let second = case.build(&text);
    let layers = |built: &BuildResult| built.image.manifest.layers.clone();
    assert_eq!(second.carried_out, ["FROM scratch", "LABEL x=y"]);
    assert_eq!(first.descriptor, second.descriptor, "a build of known steps gives the same image");
    case.file("b", "2");
    let third = case.build(&text);
    assert_eq!(third.carried_out, ["FROM scratch", "COPY b /b", "LABEL x=y", "RUN cat /b >> /c"]);
    assert_eq!(layers(&third)[..4], layers(&first)[..4]);
    assert_eq!(case.seen(&third, "c").as_deref(), Some("12"));
    // A label changes no file, and a time does not either.
    let other = text.replace("x=y", "x=z");
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
    std::fs::File::open(case.context().join("a")).unwrap().set_modified(time).unwrap();
    assert_eq!(case.build(&other).carried_out, ["FROM scratch", "LABEL x=z"]);
    let fresh = case.try_build(&text, |request| request.no_cache = true).unwrap();
    assert_eq!(fresh.carried_out.len(), 8);
}

#[test]
fn the_same_context_gives_the_same_digest_at_any_time_and_place() {
    let (Some(one), Some(two)) = (Case::new(), Case::new()) else { return };
    let text = format!(
        "{BASE}WORKDIR /srv\nCOPY d /srv/d\nRUN date > /dev/null; mkdir made; echo x > made/y; rm d/gone\nENV A=b\n"
    );
    let build = |case: &Case| {
        case.file("d/file", "content");
        case.file("d/gone", "");
        case.try_build(&text, |request| request.epoch = Some(1_700_000_000)).unwrap().descriptor
    };
    let first = build(&one);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(first, build(&two));
}

#[test]
fn stages_take_from_each_other() {
    let Some(case) = Case::new() else { return };
    let text = format!(
        "{BASE}\nFROM base AS one\nRUN echo one > /out && chown 7:8 /out\nFROM base AS two\nRUN echo two > /out\nFROM base AS unused\nRUN false\n\
         FROM base\nCOPY --from=one /out /one\nCOPY --from=two --chown=5 /out /dir/two\nRUN --mount=type=bind,from=one,source=/out,target=/mnt/out cat /mnt/out /one /dir/two > all; stat -c %u:%g one dir/two dir\n"
    );
    let built = case.build(&text);
    assert_eq!(case.seen(&built, "all").as_deref(), Some("one\none\ntwo\n"));
    assert_eq!(built.output, ["7:8", "5:5", "5:5"]);
    assert_eq!(case.seen(&built, "mnt/out"), None, "what a mount stands on is not in the image");
}

#[test]
fn what_is_there_for_a_command_only_is_in_no_layer() {
    let Some(case) = Case::new() else { return };
    let text = format!(
        "{BASE}RUN --mount=type=secret,id=token --mount=type=secret,id=token,env=TOKEN,target=/s/t --mount=type=tmpfs,target=/t cat /run/secrets/token /s/t; echo \" $TOKEN\"; touch /t/x; ls -d /proc /sys /dev /etc/hosts /etc/resolv.conf > /dev/null\n"
    );
    let secret = |request: &mut Request<'_>| {
        request.secrets.insert("token".to_owned(), Secret::new("hush"));
    };
    let built = case.try_build(&text, secret).unwrap();
    assert_eq!(built.output, ["hushhush hush"]);
    let last = built.image.config.history.last().expect("a history");
    assert!(last.empty_layer, "{last:?}");
    assert_eq!(built.image.manifest.layers.len(), 2);
    // The value is not part of the key; without the secret the step has another key.
    let other = case.try_build(&text, |request| {
        request.secrets.insert("token".to_owned(), Secret::new("other"));
    });
    assert_eq!(other.unwrap().carried_out, ["FROM scratch"]);
    let refused = case.try_build(&text.replace("id=token ", "id=none,required=true "), |_| {}).err();
    let Some(BuildError::Refused(refusals)) = refused else { panic!("{refused:?}") };
    assert_eq!(refusals[0].message, "the secret `none` is missing");
}

#[test]
fn a_cache_is_there_again_and_in_no_layer() {
    let Some(case) = Case::new() else { return };
    let text = |n: u32| {
        format!(
            "{BASE}RUN --mount=type=cache,target=/var/cache/x echo {n} >> /var/cache/x/seen; cat /var/cache/x/seen\n"
        )
    };
    assert_eq!(case.build(&text(1)).output, ["1"]);
    let built = case.build(&text(2));
    assert_eq!(built.output, ["1", "2"]);
    assert_eq!(built.image.manifest.layers.len(), 2);
}

#[test]
fn a_command_that_fails_is_reported_at_its_place_with_its_last_lines() {
    let Some(case) = Case::new() else { return };
    let text = format!("{BASE}RUN echo before; echo oh no >&2; exit 3\n");
    let error = case.try_build(&text, |_| {}).err();
    let Some(BuildError::Failed(failure)) = error else { panic!("{error:?}") };
    let Failure { span, error, output } = *failure;
    let span = span.expect("a place");
    assert_eq!(error.message(), "the command failed with exit code 3");
    assert!(text[span].starts_with("RUN echo before"));
    assert_eq!(output, [b"before".to_vec(), b"oh no".to_vec()]);
    // Earlier results are in the cache.
    assert_eq!(case.build(BASE).carried_out, ["FROM scratch"]);
    let work: Vec<_> = std::fs::read_dir(case.store.root().join("cache/work")).unwrap().collect();
    assert!(work.is_empty(), "{work:?}");
}

#[test]
fn a_canceled_build_ends_at_once_and_leaves_nothing() {
    let Some(case) = Case::new() else { return };
    case.build(BASE);
    let stopped = AtomicBool::new(false);
    let platform = Platform::here().to_string();
    let options = Options { args: &[], target: None, platform: &platform, build_platform: &platform };
    let build = jobc_dockerfile::read(format!("{BASE}RUN sleep 60\n").as_bytes(), &options).unwrap();
    let request = Request {
        build: &build,
        context: Some(case.context()),
        ignore: Ignore::default(),
        labels: IndexMap::new(),
        tags: Vec::new(),
        secrets: IndexMap::new(),
        no_cache: false,
        pull: false,
        epoch: None,
        platform: Platform::here(),
        locked: IndexMap::new(),
        compression: Compression::Gzip,
        fetch: None,
        access: Access::default(),
        extras: Extras::default(),
    };
    let began = std::time::Instant::now();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            stopped.store(true, Ordering::Relaxed);
        });
        super::build(&case.store, &request, &ignore_progress, &stopped)
    });
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(result.unwrap_err().to_string(), "the build was canceled");
    assert!(std::fs::read_dir(case.store.root().join("cache/work")).unwrap().next().is_none());
}

#[test]
fn what_a_killed_build_has_left_is_removed_by_the_next() {
    let Some(case) = Case::new() else { return };
    let left = case.store.root().join("cache/work/1-0/0/upper");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::create_dir_all(case.store.root().join("cache/work/1-0/containers")).unwrap();
    std::fs::write(case.store.root().join("partial/new-1-0"), "half a layer").unwrap();
    case.build(BASE);
    assert!(!case.store.root().join("partial/new-1-0").exists());
    assert!(std::fs::read_dir(case.store.root().join("cache/work")).unwrap().next().is_none());
}

#[test]
fn settings_go_from_stage_to_stage() {
    let Some(case) = Case::new() else { return };
    let text = format!(
        "{BASE}ENV A=1 B=\"two words\"\nLABEL l=$A\nUSER 5:6\nWORKDIR /w\nEXPOSE 80 90-91/udp\nVOLUME /data\nSTOPSIGNAL SIGUSR1\nCMD [\"old\"]\nONBUILD RUN echo triggered; id -u; pwd\nARG X=arg\nRUN echo $A $B $X; id -u\nFROM base\nENTRYPOINT [\"/bin/sh\"]\n"
    );
    let built = case.build(&text);
    assert_eq!(built.output, ["1 two words arg", "5", "triggered", "5", "/w"]);
    let mut config = serde_json::to_value(&built.image.config.config).unwrap();
    config.sort_all_objects();
    insta::assert_snapshot!(config.to_string(), @r#"{"Entrypoint":["/bin/sh"],"Env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin","A=1","B=two words"],"ExposedPorts":{"80/tcp":{},"90/udp":{},"91/udp":{}},"Labels":{"l":"1"},"StopSignal":"SIGUSR1","User":"5:6","Volumes":{"/data":{}},"WorkingDir":"/w"}"#);
}

#[test]
fn a_working_directory_belongs_to_the_user_of_the_moment() {
    let Some(case) = Case::new() else { return };
    let text = format!(
        "{BASE}RUN mkdir -p /etc && echo u:x:7:8::/: > /etc/passwd && echo g:x:9: > /etc/group\nWORKDIR /before\nUSER u\nWORKDIR /a/b\nUSER 5:g\nWORKDIR c\nUSER 0\nWORKDIR /a/d\nWORKDIR /a/b\nRUN stat -c '%n %u:%g %a' /before /a /a/b /a/b/c /a/d\n"
    );
    assert_eq!(
        case.build(&text).output,
        ["/before 0:0 755", "/a 7:8 755", "/a/b 7:8 755", "/a/b/c 5:9 755", "/a/d 0:0 755"]
    );
}

#[test]
fn the_working_directory_is_in_the_configuration_only_where_written() {
    let Some(case) = Case::new() else { return };
    let built = case.build(&format!("{BASE}RUN pwd\nCOPY busybox to\nRUN ls /to\n"));
    assert_eq!(built.output, ["/", "/to"]);
    assert_eq!(built.image.config.config.working_dir, "");
    assert_eq!(case.build(&format!("{BASE}WORKDIR /\n")).image.config.config.working_dir, "/");
}

#[test]
fn parents_are_copied_with_their_modes() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(case) = Case::new() else { return };
    case.file("src/private/deep/a.txt", "a");
    case.file("src/private/b.md", "b");
    let mode = |path: &str, mode| {
        std::fs::set_permissions(case.context().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("src/private", 0o700);
    mode("src/private/deep", 0o2750);
    let text = format!(
        "{BASE}COPY --parents src/./**/*.txt /to/\nCOPY --parents src/private/deep /all\nRUN find /to /all | sort | xargs stat -c '%n %a %u:%g'\n"
    );
    assert_eq!(
        case.build(&text).output,
        [
            "/all 755 0:0",
            "/all/src 755 0:0",
            "/all/src/private 700 0:0",
            "/all/src/private/deep 2750 0:0",
            "/all/src/private/deep/a.txt 644 0:0",
            "/to 755 0:0",
            "/to/private 700 0:0",
            "/to/private/deep 2750 0:0",
            "/to/private/deep/a.txt 644 0:0",
        ]
    );
    // The mode of a directory above is part of what is copied.
    mode("src/private", 0o711);
    assert!(case.build(&text).output.contains(&"/to/private 711 0:0".to_owned()));
}

#[test]
fn a_base_for_other_platforms_only_is_named() {
    let Some(case) = Case::new() else { return };
    let built = case.build("FROM scratch\nCOPY busybox /bin/busybox\n");
    case.store.tag(&"only.example/here:1".parse::<Reference>().unwrap(), &built.descriptor).unwrap();
    let here = Platform::here();
    let error =
        case.try_build("FROM --platform=linux/s390x only.example/here:1\nCOPY busybox /b\n", |_| {}).err();
    let Some(BuildError::Failed(failure)) = error else { panic!("{error:?}") };
    let digest = &built.descriptor.digest;
    assert_eq!(
        failure.error.message(),
        format!("the image {digest} is for `{here}`, and not for `linux/s390x`")
    );
}

#[test]
fn heredocs_are_commands_scripts_and_files() {
    let Some(case) = Case::new() else { return };
    let text = format!(
        "{BASE}RUN <<END\necho one\necho two\nEND\nRUN <<END\n#!/bin/sh\necho script $0\nEND\nCOPY <<first <<second /files/\n1\nfirst\n2 $PATH\nsecond\nRUN cat /files/first; stat -c %a /files/first\n"
    );
    assert_eq!(case.build(&text).output, ["one", "two", "script /dev/pipes/END", "1", "644"]);
}

#[test]
fn what_is_removed_is_not_in_the_image() {
    let Some(case) = Case::new() else { return };
    case.file("d/a", "");
    case.file("d/b", "");
    let text = format!(
        "{BASE}COPY d /d\nRUN rm /d/a && rm -r /bin/busybox_none 2>/dev/null; mkdir /e && touch /e/x\nRUN rm -r /e && mkdir /e && touch /e/y\nRUN ls /d /e\n"
    );
    assert_eq!(case.build(&text).output, ["/d:", "b", "", "/e:", "y"]);
    // From the layers in the store, too.
    let again = format!("{text}RUN ls /d /e # again\n");
    assert_eq!(case.build(&again).output, ["/d:", "b", "", "/e:", "y"]);
}

#[test]
fn a_locked_base_is_taken_by_its_digest_whatever_has_its_name() {
    let Some(case) = Case::new() else { return };
    case.file("a", "1");
    let name: Reference = "locked.example/base:1".parse().unwrap();
    let tagged = |text: &str| {
        let built = case.build(text);
        case.store.tag(&name, &built.descriptor).unwrap();
        built.descriptor.digest
    };
    // Still in the store under another name, as what was pulled by its digest is.
    let first = tagged("FROM scratch\nCOPY a /a\nLABEL which=first\n");
    case.store.tag(&name.at(&first), &case.store.find(&name).unwrap().unwrap()).unwrap();
    tagged("FROM scratch\nLABEL which=second\n");
    let label = |locked: Option<&Digest>| {
        let built = case.try_build("FROM locked.example/base:1\nLABEL x=y\n", |request| {
            request.locked.extend(locked.map(|digest| ("locked.example/base:1".to_owned(), digest.clone())));
        });
        built.unwrap().image.config.config.labels["which"].clone()
    };
    assert_eq!(label(None), "second");
    assert_eq!(label(Some(&first)), "first");
}

#[test]
fn missing_sources_are_reported() {
    let Some(case) = Case::new() else { return };
    let failed = |text: &str| {
        let error = case.try_build(text, |_| {}).err();
        let Some(BuildError::Failed(failure)) = error else { panic!("{error:?}") };
        failure.error.message()
    };
    assert_eq!(failed("FROM nowhere\n"), "the image `nowhere:latest` is not in the store");
    assert_eq!(failed("FROM scratch\nCOPY none /\n"), "`none`: no such file or directory");
    assert_eq!(failed("FROM scratch\nCOPY n*ne /\n"), "no file matches");
    case.file("a1", "");
    case.file("a2", "");
    assert_eq!(failed("FROM scratch\nCOPY a* /to\n"), "cannot copy several files to `/to`: not a directory");
}
