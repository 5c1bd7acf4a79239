use std::fs;

use insta::assert_snapshot;

use super::*;

/// What is named of files in a container, given as `path size`, for the user whose home is /home/ann.
fn check(files: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    for line in files {
        let (path, size) = line.rsplit_once(' ').unwrap();
        let (layer, path) = match path.strip_prefix("/home/") {
            Some(path) => ("upper0", path),
            None => ("root", path.trim_start_matches('/')),
        };
        let path = directory.path().join(layer).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(&path).unwrap().set_len(size.parse().unwrap()).unwrap();
    }
    let written = vec![("root".to_owned(), "/".into()), ("upper0".to_owned(), "/home".into())];
    let layers = WrittenLayers { directory: fs::File::open(directory.path()).unwrap().into(), written };
    let Discarded { directories, others, complete } = layers.discarded(Some(Path::new("/home/ann")));
    let mut lines: Vec<String> = directories
        .iter()
        .map(|DirectorySize { path, bytes, files, .. }| format!("{} {bytes} {files}", path.display()))
        .collect();
    lines.extend((others > 0).then(|| format!("{others} others")));
    lines.extend((!complete).then(|| "incomplete".to_owned()));
    format!("{}\n\n{}", files.join("\n"), lines.join("\n"))
}

#[test]
fn files_are_summed_by_the_directory_that_people_know() {
    assert_snapshot!(check(&[
        "/home/ann/.cache/huggingface/hub/models--a/blobs/1 3000000",
        "/home/ann/.cache/huggingface/token 40",
        "/home/ann/.cache/pip/http/x 2000000",
        "/home/ann/.local/lib/python3.13/site-packages/x/x.py 4000000",
        "/home/ann/runs/one/checkpoints/1.pt 500",
        "/home/ann/runs/one/metrics.json 20",
        "/home/ann/result.json 10",
        "/opt/tool/bin/tool 700",
    ]), @"
    /home/ann/.cache/huggingface/hub/models--a/blobs/1 3000000
    /home/ann/.cache/huggingface/token 40
    /home/ann/.cache/pip/http/x 2000000
    /home/ann/.local/lib/python3.13/site-packages/x/x.py 4000000
    /home/ann/runs/one/checkpoints/1.pt 500
    /home/ann/runs/one/metrics.json 20
    /home/ann/result.json 10
    /opt/tool/bin/tool 700

    /home/ann/.local/lib/python3.13 4000000 1
    /home/ann/.cache/huggingface 3000040 2
    /home/ann/.cache/pip 2000000 1
    /opt/tool/bin 700 1
    /home/ann/runs/one 520 2
    1 others
    ");
}

#[test]
fn files_that_need_not_be_kept_are_not_named() {
    assert_snapshot!(check(&[
        "/tmp/big 90000000",
        "/var/tmp/big 90000000",
        "/etc/hosts 200",
        "/var/cache/small 5000",
        "/home/ann/.bash_history 4000",
        "/home/ann/.config/matplotlib/fontlist.json 40000",
        "/home/ann/code/__pycache__/x.bin 400",
        "/home/ann/code/x.pyc 400",
        "/home/ann/code/.x.lock 1",
        "/home/ann/code/empty 0",
    ]), @"
    /tmp/big 90000000
    /var/tmp/big 90000000
    /etc/hosts 200
    /var/cache/small 5000
    /home/ann/.bash_history 4000
    /home/ann/.config/matplotlib/fontlist.json 40000
    /home/ann/code/__pycache__/x.bin 400
    /home/ann/code/x.pyc 400
    /home/ann/code/.x.lock 1
    /home/ann/code/empty 0


    ");
}

#[test]
fn a_walk_ends_where_there_are_too_many_files() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("upper/data/x")).unwrap();
    for name in ["1", "2", "3"] {
        fs::write(directory.path().join("upper/data/x").join(name), "text").unwrap();
    }
    let layer = fs::File::open(directory.path().join("upper")).unwrap().into();
    let files = |left| {
        let mut walk = Walk { summary: Summary::new(None), left, is_complete: true };
        walk.directory(&layer, Path::new("/"), 0);
        let Discarded { directories, complete, .. } = walk.summary.finish(walk.is_complete);
        (directories.iter().map(|directory| directory.files).sum::<u64>(), complete)
    };
    assert_eq!(files(5), (3, true));
    assert_eq!(files(4), (2, false));
}
