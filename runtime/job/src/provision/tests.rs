mod server;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use insta::assert_snapshot;
use jobc_schema::plan::JobPlan;
use serde_json::{Value, json};
use tempfile::TempDir;

use jobc_fake_gpus::plan as sample;

use super::large_data::large_data_directory;
use super::*;
use crate::host_environment::HostEnvironments;
use crate::secrets::Secrets;
use crate::submission::Submission;
use jobc_sys::id::JobId;
use server::{Answer, Server};

/// A job in its own directories: `job/` is the job file's.
struct Case {
    dir: TempDir,
    directory: Directory,
    plan: JobPlan,
    submission: Submission,
    secrets: Secrets,
    environments: HostEnvironments,
    on_progress: Vec<Progress>,
}

/// A job whose only role `a` is as given, with volumes.
fn case(role: &Value, volumes: &Value, more: &Value) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let id = JobId { name: "a".to_owned(), run: 1 };
    let directory = Directory { id, state: at("state"), record: at("record") };
    let mut role = role.clone();
    role["name"] = json!("a");
    let mut plan = json!({"roles": [role], "volumes": volumes});
    for (key, value) in more.as_object().unwrap() {
        plan[key] = value.clone();
    }
    let plan = sample::plan(&plan);
    let submission = Submission { directory: at("job"), ..Submission::default() };
    let bundle = directory.bundle(&jobc_sys::id::TaskId::new("a", 0));
    std::fs::create_dir_all(&bundle).unwrap();
    let config = json!({
        "ociVersion": "1.1.0",
        "process": {"cwd": "/", "args": ["true"], "user": {"uid": 0, "gid": 0}},
        "annotations": {"dev.jobc.image": "host", "dev.jobc.from-image": "env"},
    });
    std::fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    Case {
        dir,
        directory,
        plan,
        submission,
        secrets: Secrets::default(),
        environments: HostEnvironments::default(),
        on_progress: vec![],
    }
}

impl Case {
    fn provide(&mut self) -> Result<ProvisionedJob> {
        let job = Job {
            directory: &self.directory,
            plan: &self.plan,
            submission: &self.submission,
            secrets: &self.secrets,
            environments: &self.environments,
        };
        let on_progress = &mut self.on_progress;
        provide(&job, &mut |progress| on_progress.push(progress), &AtomicBool::new(false))
    }

    fn refused(&mut self) -> String {
        let error = self.provide().expect_err("refused");
        let on_progress = format!("{error}\n{}", error.advice().as_deref().unwrap_or_default());
        on_progress.replace(self.dir.path().to_str().unwrap(), "ROOT")
    }

    fn volume(&self, name: &str) -> PathBuf {
        self.directory.build().join("oci/volumes").join(name)
    }
}

fn mounts(name: &str, writable: bool) -> Value {
    json!({"mounts": [{"volume": name, "path": "/v", "writable": writable}]})
}

fn data(source: &Value) -> Value {
    json!({"d": {"kind": "data", "source": source}})
}

fn fetched(source: &Value) -> Case {
    case(&mounts("d", false), &data(source), &json!({}))
}

fn https(url: &str, unpack: bool) -> Value {
    json!({"kind": "https", "url": url, "unpack": unpack})
}

#[test]
fn data_must_be_there() {
    let path = json!({"kind": "path", "path": "./input"});
    let mut there = fetched(&path);
    std::fs::create_dir(there.submission.directory.join("input")).unwrap();
    there.provide().unwrap();
    let expected = there.submission.directory.join("input");
    assert_eq!(there.on_progress[0], Progress::DataReady { volume: "d".to_owned(), path: expected });
    assert_snapshot!(fetched(&path).refused(), @r"
    `data.d.source`: cannot mount `ROOT/job/input`: no such file or directory
    put the data there, or name another directory; relative paths start at `ROOT/job`
    ");
    let mut elsewhere = fetched(&json!({"kind": "nfs", "host": "filer", "path": "/d"}));
    assert_snapshot!(elsewhere.refused(), @r"
    `data.d.source`: an NFS export cannot be fetched to this host
    mount it, and name the directory in targets.yaml: `oci: {storage: {d: /mnt/d}}`
    ");
    let target = json!({"name": "local", "settings": {"backends": ["oci"],
        "oci": {"storage": {"d": expected_directory(&elsewhere)}}}});
    let mut given = case(
        &mounts("d", false),
        &data(&json!({"kind": "nfs", "host": "filer", "path": "/d"})),
        &json!({"target": target}),
    );
    given.provide().unwrap();
}

fn expected_directory(case: &Case) -> String {
    case.submission.directory.to_str().unwrap().to_owned()
}

#[test]
fn a_volume_that_no_role_mounts_is_not_looked_at() {
    let mut case = case(&json!({}), &data(&json!({"kind": "path", "path": "absent"})), &json!({}));
    case.provide().unwrap();
}

#[test]
fn outputs_are_made_for_who_writes_to_them() {
    let output = json!({"o": {"kind": "output", "source": {"kind": "path", "path": "out/model"}}});
    let mut case = case(&mounts("o", true), &output, &json!({}));
    case.provide().unwrap();
    let made = case.submission.directory.join("out/model");
    assert_eq!(std::fs::metadata(&made).unwrap().permissions().mode() & 0o7777, 0o755);
    case.provide().expect("one that is there is fine");
    std::fs::remove_dir(&made).unwrap();
    std::fs::write(case.submission.directory.join("file"), "").unwrap();
    let output = json!({"o": {"kind": "output", "source": {"kind": "path", "path": "file/below"}}});
    let mut blocked = self::case(&mounts("o", true), &output, &json!({}));
    std::fs::write(blocked.submission.directory.join("file"), "").unwrap();
    assert_snapshot!(blocked.refused(), @"`outputs.o.source`: cannot create the directory `ROOT/job/file/below`: not a directory (ENOTDIR)");
}

#[test]
fn the_output_of_another_user_belongs_to_them() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let output = json!({"o": {"kind": "output", "source": {"kind": "path", "path": "out"}}});
    let mut case = case(&mounts("o", true), &output, &json!({}));
    let config = case.directory.bundle(&jobc_sys::id::TaskId::new("a", 0)).join("config.json");
    let text =
        std::fs::read_to_string(&config).unwrap().replace(r#""uid":0,"gid":0"#, r#""uid":1234,"gid":5678"#);
    std::fs::write(&config, text).unwrap();
    case.provide().unwrap();
    let status = std::fs::metadata(case.submission.directory.join("out")).unwrap();
    assert_eq!((status.uid(), status.gid(), status.mode() & 0o7777), (1234, 5678, 0o755));
}

#[test]
fn a_directory_of_the_job_is_made_and_goes_with_it() {
    let of_job = json!({"d": {"kind": "data", "source": {"kind": "job"}}});
    let mut case = case(&mounts("d", true), &of_job, &json!({}));
    case.provide().unwrap();
    let place = std::fs::canonicalize(case.volume("d")).unwrap();
    assert!(place.starts_with(std::fs::canonicalize(case.dir.path()).unwrap()), "{}", place.display());
    assert!(
        matches!(&case.on_progress[..], [.., Progress::DataReady { volume, .. }] if volume == "d"),
        "{:?}",
        case.on_progress
    );
    // A later attempt finds what an earlier one wrote.
    std::fs::write(place.join("kept"), "x").unwrap();
    case.provide().unwrap();
    assert!(place.join("kept").exists());
    release(&case.directory).unwrap();
    let gone = !place.exists() || place.starts_with(std::fs::canonicalize(&case.directory.state).unwrap());
    assert!(gone, "{} is left", place.display());
}

#[test]
fn roots_that_are_not_there_are_refused_with_what_to_do() {
    let image = |image: Value| {
        let mut case = case(&json!({}), &json!({}), &json!({"images": {"main": image}}));
        let config = case.directory.bundle(&jobc_sys::id::TaskId::new("a", 0)).join("config.json");
        let text = std::fs::read_to_string(&config).unwrap().replace(r#""host""#, r#""pytorch:2.4""#);
        std::fs::write(&config, text).unwrap();
        case.refused()
    };
    let named = json!({"reference": "pytorch:2.4", "source": {"kind": "reference"}, "declared_at": "/image"});
    let built = json!({"reference": "pytorch:2.4", "source": {"kind": "build", "from": "x"}, "declared_at": "/image"});
    let root = |root: &str| {
        let mut case = case(&json!({}), &json!({}), &json!({}));
        case.submission.roots.insert("a".to_owned(), root.to_owned());
        case.refused()
    };
    assert_snapshot!([image(named), image(built), root("/"), root("absent")].join("\n\n"), @r"
    the image `pytorch:2.4` of `a` is not in the image store
    name a root with `--root a=PATH`: a directory, an archive (`docker export`), or a bundle of `umoci unpack`; or run on this host's own files with `--root host`

    the image `pytorch:2.4` of `a` is not built yet
    name a root with `--root a=PATH`: a directory, an archive (`docker export`), or a bundle of `umoci unpack`; or run on this host's own files with `--root host`

    `/` with everything mounted below it cannot be a root
    use `host`: the host's own files, without kernel file systems and other containers

    cannot open the root `ROOT/job/absent`: no such file or directory (ENOENT)
    use a directory, an archive (`.tar`, `.tar.gz`), an unpacked bundle, or `host`
    ");
}

#[test]
fn a_file_is_fetched_and_resumed_where_it_broke_off() {
    if !jobc_test_skip::has_program("curl") {
        return;
    }
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let server = Server::start({
        let content = content.clone();
        move |request| match request.number {
            // It breaks off in the middle, then the server is busy, then it gives the rest.
            0 => Answer::Broken { content: content.clone(), after: 300_000 },
            1 => Answer::Status(503),
            _ => Answer::File(content.clone()),
        }
    });
    let mut case = fetched(&https(&server.url("/set.bin?key=hidden"), false));
    case.provide().unwrap();
    assert!(std::fs::read(case.volume("d")).unwrap() == content);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].contains("Range: bytes=300000-"), "{}", requests[2]);
    let from = server.url("/set.bin");
    assert!(
        matches!(&case.on_progress[1], Progress::Fetching { volume, from: f, bytes: 0 } if volume == "d" && *f == from),
        "{:?}",
        case.on_progress
    );
    // A second fetch uses the existing data.
    case.provide().unwrap();
    assert_eq!(server.requests().len(), 3);
    release(&case.directory).unwrap();
}

#[test]
fn a_server_without_ranges_begins_again() {
    if !jobc_test_skip::has_program("curl") {
        return;
    }
    let content = vec![7; 100_000];
    let server = Server::start({
        let content = content.clone();
        move |request| match request.number {
            0 => Answer::Broken { content: content.clone(), after: 50_000 },
            _ => Answer::Whole(content.clone()),
        }
    });
    let mut case = fetched(&https(&server.url("/f"), false));
    case.provide().unwrap();
    assert!(std::fs::read(case.volume("d")).unwrap() == content);
}

#[test]
fn what_a_server_refuses_is_reported() {
    if !jobc_test_skip::has_program("curl") {
        return;
    }
    let server = Server::start(|request| match request.path() {
        "/absent" => Answer::Status(404),
        "/closed" => Answer::Status(403),
        "/away" => Answer::Redirect("file:///etc/passwd".to_owned()),
        _ => Answer::Status(500),
    });
    let refused = |path: &str| {
        let mut case = fetched(&https(&server.url(path), false));
        let output = case.refused().replace(&server.url(""), "http://SERVER");
        assert!(!case.volume("d").exists());
        assert!(
            !large_data_directory(&case.directory).join("volumes").read_dir().unwrap().any(|_| true),
            "something is left"
        );
        output
    };
    assert_snapshot!([refused("/absent"), refused("/closed"), refused("/away")].join("\n\n"), @r#"
    `data.d.source`: `http://SERVER/absent` does not exist: The requested URL returned error: 404


    `data.d.source`: access to `http://SERVER/closed` was denied: The requested URL returned error: 403
    give the volume a `secret` with a token that has read access

    `data.d.source`: cannot fetch `http://SERVER/away`: Protocol "file" not supported or disabled in libcurl
    "#);
    let strange = |url: &str| fetched(&https(url, false)).refused();
    assert_snapshot!([strange("http://example.org/a"), strange("ftp://127.0.0.1/a")].join("\n\n"), @r"
    `data.d.source`: `http://example.org/a` is not a supported URL
    use `https://…`; other transports do not protect the data

    `data.d.source`: `ftp://127.0.0.1/a` is not a supported URL
    use `https://…`; other transports do not protect the data
    ");
}

#[test]
fn a_secret_opens_a_volume_and_stays_with_its_server() {
    if !jobc_test_skip::has_program("curl") {
        return;
    }
    let other = Server::start(|_| Answer::File(b"moved".to_vec()));
    let address = other.url("/moved");
    let server = Server::start(move |_| Answer::Redirect(address.replace("127.0.0.1", "localhost")));
    let mut case = fetched(&https(&server.url("/f"), false));
    case.plan.volumes["d"].secret = Some("token".to_owned());
    std::fs::write(case.submission.directory.join("token"), "s3cr3t\"x\n").unwrap();
    case.plan.secrets.insert("token".to_owned(), jobc_schema::plan::SecretPlan::File("token".to_owned()));
    case.secrets = Secrets::read(&case.plan, &case.submission.directory).unwrap();
    case.provide().unwrap();
    assert!(server.requests()[0].contains("Authorization: Bearer s3cr3t\"x\r\n"), "{}", server.requests()[0]);
    assert!(!other.requests()[0].contains("s3cr3t"), "{}", other.requests()[0]);
}

#[test]
fn an_archive_is_unpacked_and_cannot_reach_outside() {
    if !jobc_test_skip::has_program("curl") {
        return;
    }
    let archive = |paths: &[(&str, &[u8])]| {
        let mut builder =
            tar::Builder::new(flate2::write::GzEncoder::new(vec![], flate2::Compression::fast()));
        for (path, content) in paths {
            let mut header = tar::Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(content.len() as u64);
            header.set_mode(0o4644);
            header.set_uid(4321);
            header.set_gid(4321);
            header.set_mtime(0);
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap()
    };
    let (good, bad) = (archive(&[("set/one", b"1"), ("set/two", b"22")]), archive(&[("../out", b"x")]));
    let server = Server::start(move |request| {
        Answer::File(if request.path() == "/good.tar.gz" { good.clone() } else { bad.clone() })
    });
    let mut case = fetched(&https(&server.url("/good.tar.gz"), true));
    case.provide().unwrap();
    let two = case.volume("d").join("set/two");
    assert_eq!(std::fs::read(&two).unwrap(), b"22");
    let status = std::fs::metadata(&two).unwrap();
    // Data belongs to the user who fetched it, and grants no additional rights.
    assert_eq!((status.uid(), status.mode() & 0o7777), (rustix::process::geteuid().as_raw(), 0o644));
    let mut evil = fetched(&https(&server.url("/bad.tar.gz"), true));
    let output = evil.refused();
    assert!(output.contains("a path with `..`"), "{output}");
}

/// Runs git in a directory, with an author's name.
fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
        .args(arguments)
        .current_dir(directory);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_repository_is_fetched_at_a_branch_a_tag_or_a_commit() {
    let origin = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| git(origin.path(), arguments);
    git(&["init", "-q", "-b", "trunk", "."]);
    let commit = |text: &str| {
        std::fs::write(origin.path().join("file"), text).unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", text]);
        git(&["rev-parse", "HEAD"])
    };
    let first = commit("one");
    git(&["tag", "v1"]);
    commit("two");
    git(&["branch", "side", &first]);
    let url = format!("file://{}", origin.path().display());
    let fetch = |reference: Option<&str>| {
        let mut source = json!({"kind": "git", "url": url});
        if let Some(reference) = reference {
            source["ref"] = json!(reference);
        }
        let mut case = fetched(&source);
        let provided = case.provide();
        let text = std::fs::read_to_string(case.volume("d").join("file"));
        provided.map(|_| text.unwrap()).map_err(|error| {
            format!("{error}\n{}", error.advice().as_deref().unwrap_or_default()).replace(&url, "URL")
        })
    };
    assert_eq!(fetch(None).as_deref(), Ok("two"));
    for reference in ["v1", "side", first.as_str(), &first[..9]] {
        assert_eq!(fetch(Some(reference)).as_deref(), Ok("one"), "{reference}");
    }
    let refused =
        ["absent", "--upload-pack=touch /tmp/x", "a:b"].map(|reference| fetch(Some(reference)).unwrap_err());
    assert_snapshot!(refused.join("\n\n"), @r"
    `data.d.source`: cannot fetch `absent` of `URL`: couldn't find remote ref absent
    write a branch, a tag or a commit of the repository as `ref`

    `data.d.source`: `--upload-pack=touch /tmp/x` is not a branch, tag or commit


    `data.d.source`: `a:b` is not a branch, tag or commit
    ");
}

#[test]
fn stopping_ends_a_fetch_at_once() {
    if !jobc_test_skip::has_program("curl") {
        return;
    }
    let server = Server::start(|_| Answer::Hangs);
    let case = fetched(&https(&server.url("/slow"), false));
    let stopped = AtomicBool::new(false);
    let begun = std::time::Instant::now();
    let error = std::thread::scope(|scope| {
        let job = Job {
            directory: &case.directory,
            plan: &case.plan,
            submission: &case.submission,
            secrets: &case.secrets,
            environments: &case.environments,
        };
        let thread = scope.spawn({
            let stopped = &stopped;
            move || provide(&job, &mut |_| {}, stopped).unwrap_err()
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        stopped.store(true, Ordering::Relaxed);
        thread.join().unwrap()
    });
    assert_eq!(error.to_string(), "`data.d.source`: the job ended before it started");
    assert!(begun.elapsed().as_secs() < 10);
    assert!(!case.volume("d").exists());
}

#[test]
fn keys_for_ssh_are_made_once_and_go_with_the_job() {
    if std::process::Command::new("ssh-keygen").arg("-?").output().is_err() {
        jobc_test_skip::skip("ssh-keygen");
        return;
    }
    let distributed = json!({"framework": "mpi", "members": [], "instances": 1, "world_size": 1, "port": 1,
        "ssh": {"port": 2222, "user": "root"}});
    let mut case = case(&json!({}), &json!({}), &json!({"distributed": distributed, "network": "job"}));
    let keys = case.provide().unwrap().keys.expect("keys");
    let read = |name: &str| std::fs::read_to_string(keys.join(name)).unwrap();
    assert!(read("id_ed25519").starts_with("-----BEGIN OPENSSH PRIVATE KEY-----"));
    assert!(read("authorized_keys").starts_with("ssh-ed25519 "));
    assert_snapshot!(read("config"), @r"
    Host *
      Port 2222
      User root
      StrictHostKeyChecking no
      UserKnownHostsFile /dev/null
      LogLevel ERROR
    ");
    let key = read("id_ed25519");
    assert!(jobc_container::secret_directory::is_in_memory(&keys));
    case.provide().unwrap();
    assert_eq!(read("id_ed25519"), key);
    release(&case.directory).unwrap();
    assert!(!keys.exists());
    release(&case.directory).unwrap();
    assert!(Path::new(&case.directory.state).is_dir());
}

#[test]
fn stopping_ends_an_unpacking_too() {
    let mut case = case(&json!({}), &json!({}), &json!({}));
    let mut builder =
        tar::Builder::new(std::fs::File::create(case.submission.directory.join("root.tar")).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_size(3);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    builder.append_data(&mut header, "file", &b"abc"[..]).unwrap();
    builder.finish().unwrap();
    case.submission.roots.insert("*".to_owned(), "root.tar".to_owned());
    let job = Job {
        directory: &case.directory,
        plan: &case.plan,
        submission: &case.submission,
        secrets: &case.secrets,
        environments: &case.environments,
    };
    let error = provide(&job, &mut |_| {}, &AtomicBool::new(true)).unwrap_err();
    assert!(error.to_string().ends_with("canceled"), "{error}");
    assert!(!large_data_directory(&case.directory).join("roots/0").exists());
    provide(&job, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(std::fs::read(large_data_directory(&case.directory).join("roots/0/file")).unwrap(), b"abc");
}

#[test]
fn a_secret_opens_a_repository() {
    let origin = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| git(origin.path(), arguments);
    git(&["init", "-q", "-b", "trunk", "."]);
    std::fs::write(origin.path().join("file"), "private").unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    let commit = git(&["rev-parse", "HEAD"]);
    // Plain files are a repository too, without a way to fetch part of a history.
    git(&["update-server-info"]);
    let files = origin.path().join(".git");
    let server = Server::start(move |request| {
        // `x-access-token:s3cr3t`
        if !request.head.contains("Authorization: Basic eC1hY2Nlc3MtdG9rZW46czNjcjN0") {
            return Answer::Locked;
        }
        std::fs::read(files.join(request.path().trim_start_matches("/r.git/")))
            .map_or(Answer::Status(404), Answer::File)
    });
    let source = json!({"kind": "git", "url": server.url("/r.git"), "ref": commit});
    let output =
        fetched(&source).refused().replace(&server.url(""), "http://SERVER").replace(&commit, "COMMIT");
    assert_snapshot!(output, @r"
    `data.d.source`: cannot fetch `COMMIT` of `http://SERVER/r.git`: could not read Username for 'http://SERVER': terminal prompts disabled
    a private repository needs a `secret` with a token that has read access
    ");
    let mut case = fetched(&source);
    case.plan.volumes["d"].secret = Some("token".to_owned());
    std::fs::write(case.submission.directory.join("token"), "s3cr3t").unwrap();
    case.plan.secrets.insert("token".to_owned(), jobc_schema::plan::SecretPlan::File("token".to_owned()));
    case.secrets = Secrets::read(&case.plan, &case.submission.directory).unwrap();
    case.provide().unwrap();
    assert_eq!(std::fs::read_to_string(case.volume("d").join("file")).unwrap(), "private");
    // Nothing that git keeps has it.
    for name in ["config", "FETCH_HEAD"] {
        let text = std::fs::read_to_string(case.volume("d").join(".git").join(name)).unwrap();
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}
