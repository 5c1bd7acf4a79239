use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;

/// A bundle in its own directory that leaves some settings to its image.
fn bundle(left: &str, process: &Value) -> (tempfile::TempDir, Bundle) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("rootfs/etc")).unwrap();
    std::fs::write(dir.path().join("rootfs/etc/passwd"), "ada:x:1001:1002::/home/ada:/bin/sh\n").unwrap();
    std::fs::write(dir.path().join("rootfs/etc/group"), "video:x:44:ada\n").unwrap();
    let config = json!({
        "ociVersion": "1.1.0", "root": {"path": "rootfs"}, "process": process,
        "annotations": {"dev.jobc.from-image": left},
    });
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let bundle = Bundle::open(dir.path()).unwrap();
    (dir, bundle)
}

/// The image of these tests.
fn image() -> Image {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    Image {
        env: words(&["PATH=/opt/bin:/bin", "LANG=C.UTF-8", "TOKEN=of the image", "A=image"]),
        cwd: Some("/workspace".into()),
        user: Some(ImageUser::Name("ada".to_owned())),
        entrypoint: Some(words(&["/entry"])),
        command: words(&["/entry", "serve"]),
        stop_signal: None,
    }
}

fn applied(left: &str) -> String {
    let own = json!({"cwd": "/", "args": ["own", "1"], "env": ["PATH=/bin", "A=own"], "user": {"uid": 0, "gid": 0}});
    let (_dir, bundle) = bundle(left, &own);
    let mut process = bundle.config.spec.process().clone().unwrap();
    image().apply(&bundle, &mut process, |name| name == "TOKEN");
    let user = user(&bundle, Some(&image()), &[bundle.dir.join("rootfs")]).unwrap();
    let user = user.map(|user| (user.uid, user.gid, user.additional_gids));
    format!(
        "{left} => {} in {}, {}, {user:?}",
        process.args().as_ref().unwrap().join(" "),
        process.cwd().display(),
        process.env().as_ref().unwrap().join(" ")
    )
}

#[test]
fn an_image_says_what_is_left_to_it_and_no_more() {
    let words =
        ["", "env", "path", "env,path", "cwd", "user", "entrypoint", "command", "env,path,cwd,user,command"];
    assert_snapshot!(words.map(applied).join("\n"), @r"
     => own 1 in /, PATH=/bin A=own, None
    env => own 1 in /, PATH=/bin A=own LANG=C.UTF-8, None
    path => own 1 in /, PATH=/opt/bin:/bin A=own, None
    env,path => own 1 in /, PATH=/opt/bin:/bin A=own LANG=C.UTF-8, None
    cwd => own 1 in /workspace, PATH=/bin A=own, None
    user => own 1 in /, PATH=/bin A=own, Some((1001, 1002, [44, 1002]))
    entrypoint => /entry own 1 in /, PATH=/bin A=own, None
    command => /entry serve in /, PATH=/bin A=own, None
    env,path,cwd,user,command => /entry serve in /workspace, PATH=/opt/bin:/bin A=own LANG=C.UTF-8, Some((1001, 1002, [44, 1002]))
    ");
}

#[test]
fn an_unknown_program_is_refused() {
    let refused = |left: &str, image: Option<&Image>, choice: Option<&str>| {
        let (_dir, bundle) = bundle(left, &json!({"cwd": "/", "user": {"uid": 0, "gid": 0}}));
        refuse_unknown(&bundle, image, "train", choice).err().map_or("fine".to_owned(), |error| {
            format!("{error}\n{}", error.advice().as_deref().unwrap_or_default())
        })
    };
    let unpacked = Image { entrypoint: None, ..image() };
    assert_snapshot!(
        [
            refused("env,command", None, Some("host")),
            refused("entrypoint", Some(&unpacked), Some("./root")),
            refused("command", Some(&unpacked), Some("./root")),
            refused("env,cwd,user", None, None),
        ]
        .join("\n\n"),
        @r"
    `train` runs the command of its image, which the root `host` does not define
    set the command in `roles.train.run`, or use a bundle from `umoci unpack` as the root

    `train` runs the ENTRYPOINT of its image, which the root `./root` does not define
    set the whole command in `roles.train.run`

    fine

    fine
    "
    );
}

/// What `umoci unpack` makes of an image of these settings, where umoci is installed.
#[test]
fn what_umoci_unpacks_is_an_image() {
    let dir = tempfile::tempdir().unwrap();
    let umoci =
        |words: &[&str]| std::process::Command::new("umoci").args(words).current_dir(dir.path()).output();
    if umoci(&["--version"]).is_err() {
        jobc_test_skip::skip("umoci");
        return;
    }
    let umoci = |words: &[&str]| {
        let output = umoci(words).unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    };
    let rootless: &[&str] = if rustix::process::geteuid().is_root() { &[] } else { &["--rootless"] };
    umoci(&["init", "--layout", "image"]);
    umoci(&["new", "--image", "image:one"]);
    umoci(&[&["unpack", "--image", "image:one"], rootless, &["empty"]].concat());
    let etc = dir.path().join("empty/rootfs/etc");
    std::fs::create_dir_all(&etc).unwrap();
    std::fs::write(etc.join("passwd"), "ada:x:1001:1002::/home/ada:/bin/sh\n").unwrap();
    std::fs::write(etc.join("group"), "ada:x:1002:\nvideo:x:44:ada\n").unwrap();
    umoci(&["repack", "--image", "image:two", "empty"]);
    umoci(&[
        "config",
        "--image",
        "image:two",
        "--config.user",
        "ada",
        "--config.workingdir",
        "/workspace",
        "--config.env",
        "LANG=C.UTF-8",
        "--config.entrypoint",
        "/entry",
        "--config.cmd",
        "serve",
    ]);
    umoci(&[&["unpack", "--image", "image:two"], rootless, &["unpacked"]].concat());
    let image = Image::of_bundle(&Bundle::open(&dir.path().join("unpacked")).unwrap());
    assert_eq!(image.command, ["/entry", "serve"]);
    assert_eq!(image.cwd.as_deref(), Some(std::path::Path::new("/workspace")));
    assert_eq!(image.user, Some(ImageUser::Ids(1001, 1002, vec![44])));
    assert!(image.env.contains(&"LANG=C.UTF-8".to_owned()), "{:?}", image.env);
}

#[test]
fn root_of_an_image_has_the_groups_that_name_it() {
    let (_dir, bundle) = bundle("user", &json!({"args": ["a"], "cwd": "/"}));
    let root = [bundle.dir.join("rootfs")];
    let groups = |passwd: &str, group: &str| {
        std::fs::write(root[0].join("etc/passwd"), passwd).unwrap();
        std::fs::write(root[0].join("etc/group"), group).unwrap();
        root_of(&root).map(|user| (user.uid, user.gid, user.additional_gids))
    };
    let passwd = "root:x:0:0:root:/root:/bin/sh\n";
    assert_eq!(
        groups(passwd, "root:x:0:root\nbin:x:1:root,bin\nvideo:x:27:root\n"),
        Some((0, 0, vec![0, 1, 27]))
    );
    assert_eq!(groups(passwd, "root:x:0:root\nvideo:x:27:ada\n"), None);
    assert_eq!(groups("", "bin:x:1:root\n"), None);
}
