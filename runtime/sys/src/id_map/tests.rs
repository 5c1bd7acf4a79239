use serde_json::{Value, json};

use super::*;

fn linux(users: &Value, groups: &Value) -> Linux {
    serde_json::from_value(json!({"uidMappings": users, "gidMappings": groups})).expect("two maps")
}

/// Maps of config.json as triples of inside, outside, length, and below the result or the error.
fn check(users: &[[u32; 3]], groups: &[[u32; 3]]) -> String {
    let list = |triples: &[[u32; 3]]| -> Value {
        triples
            .iter()
            .map(|[inside, outside, size]| json!({"containerID": inside, "hostID": outside, "size": size}))
            .collect()
    };
    let output = match IdMaps::read(&linux(&list(users), &list(groups))) {
        Ok(None) => "no maps".to_owned(),
        Ok(Some(maps)) => format!("{:?} {:?}", maps.users.text(), maps.groups.text()),
        Err(error) => error.to_string(),
    };
    format!("{users:?} {groups:?}\n  {output}\n")
}

#[test]
fn maps_of_config_json() {
    let one = [[0, 1000, 1]];
    let cases = [
        check(&[], &[]),
        check(&one, &one),
        check(&[[0, 1000, 1], [1, 100_000, 65536]], &one),
        check(&one, &[]),
        check(&[], &one),
        check(&[[0, 1000, 0]], &one),
        check(&one, &[[0, 4_294_967_295, 1]]),
        check(&[[4_294_967_290, 0, 6]], &one),
        check(&[[4_294_967_289, 0, 6]], &one),
        check(&[[0, 1000, 10], [9, 2000, 1]], &one),
        check(&[[0, 1000, 10], [10, 1009, 1]], &one),
        check(&[[0, 1000, 10], [10, 1010, 1]], &one),
    ];
    insta::assert_snapshot!(cases.concat());
    let many: Vec<[u32; 3]> = (0..341).map(|id| [id, id, 1]).collect();
    assert!(check(&many[..340], &one).contains("339 339 1"));
    assert!(check(&many, &one).contains("341 extents, but the kernel allows at most 340"));
}

#[test]
fn ids_are_found_in_either_direction() {
    let map = IdMap(vec![
        Extent { inside: 0, outside: 1000, length: 1 },
        Extent { inside: 1, outside: 100_000, length: 65535 },
    ]);
    assert_eq!(
        [0, 1, 65535, 65536].map(|id| map.outside(id)),
        [Some(1000), Some(100_000), Some(165_534), None]
    );
    assert_eq!(map.arguments(42).join(" "), "42 0 1000 1 1 100000 65535");
}

#[test]
fn granted_ranges_stand_behind_the_user_s_own_id() {
    let range = |first, length| subordinate::Range { first, length };
    assert_eq!(IdMap::with_granted(1000, &[]).text(), "0 1000 1\n");
    let map = IdMap::with_granted(1000, &[range(100_000, 65536), range(500_000, 10)]);
    assert_eq!(map.text(), "0 1000 1\n1 100000 65536\n65537 500000 10\n");
    let map = IdMap::with_granted(1000, &[range(1, u32::MAX - 5), range(u32::MAX - 4, 4)]);
    assert_eq!(map.text(), "0 1000 1\n1 1 4294967290\n4294967291 4294967291 4\n");
    let map = IdMap::with_granted(1000, &[range(2000, u32::MAX - 2000), range(5, 100), range(500, 100)]);
    assert!(map.extents().iter().all(|extent| extent.inside.checked_add(extent.length).is_some()));
}

#[test]
fn an_identity_has_the_ids_of_a_namespace_as_themselves() {
    let identity = |map: &str| IdMap::identity(map).text();
    assert_eq!(identity("         0          0 4294967295\n"), "0 0 4294967295\n");
    assert_eq!(identity("0 1002 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
    assert_eq!(identity(""), "");
}

#[test]
fn who_writes_the_maps() {
    let maps = |id| IdMaps { users: IdMap::with_granted(id, &[]), groups: IdMap::with_granted(id, &[]) };
    let writer = |maps: &IdMaps, id| maps.writer(Uid::from_raw(id), Gid::from_raw(id), id == 0);
    assert_eq!(writer(&maps(1000), 1000), Ok(Writer::Child));
    assert_eq!(writer(&maps(1000), 0), Ok(Writer::Parent));
    assert_eq!(writer(&maps(0), 0), Ok(Writer::Parent), "root may map itself");
    assert_ne!(writer(&maps(1001), 1000), Ok(Writer::Child), "not its own id");
    let alone = maps(0).writer(Uid::ROOT, Gid::ROOT, false);
    assert_eq!(alone, Ok(Writer::Child), "root without the capabilities maps itself alone");

    let of_group_0 = IdMaps { users: IdMap::with_granted(1000, &[]), groups: IdMap::with_granted(0, &[]) };
    assert_eq!(of_group_0.writer(Uid::from_raw(1000), Gid::ROOT, false), Ok(Writer::Child));

    let root = IdMaps { users: IdMap::with_granted(1000, &[]), groups: IdMap::with_granted(0, &[]) };
    let error = writer(&root, 1000).expect_err("root of the host");
    assert_eq!(
        error.to_string(),
        "config.json: /linux/gidMappings: only root can map the host's id 0 into a container"
    );
}

#[test]
fn the_first_id_is_one_s_own_else_root_s_where_there_is_one() {
    let first = |inside, own| IdMap(vec![Extent { inside, outside: 1000, length: 10 }]).first(own);
    assert_eq!(first(0, None), 0);
    assert_eq!(first(7, None), 7);
    assert_eq!(first(0, Some(1000)), 0);
    assert_eq!(first(0, Some(1003)), 3);
    assert_eq!(first(5, Some(0)), 5, "not mapped");
    let kept = IdMap::around(1000, 1000, &[subordinate::Range { first: 100_000, length: 65536 }]);
    assert_eq!((kept.first(None), kept.first(Some(1000))), (0, 1000));
}

#[test]
fn granted_ranges_stand_around_an_id_that_is_kept() {
    let range = |first, length| subordinate::Range { first, length };
    let around = |own, granted: &[_]| IdMap::around(own, own, granted).text();
    assert_eq!(around(1000, &[]), "1000 1000 1\n");
    assert_eq!(around(1000, &[range(100_000, 65536)]), "1000 1000 1\n0 100000 1000\n1001 101000 64536\n");
    assert_eq!(
        around(1000, &[range(100_000, 1000), range(300_000, 5)]),
        "1000 1000 1\n0 100000 1000\n1001 300000 5\n"
    );
    assert_eq!(around(1_500_000, &[range(100_000, 65536)]), "1500000 1500000 1\n0 100000 65536\n");
    assert_eq!(around(0, &[range(100_000, 10)]), "0 0 1\n1 100000 10\n", "a group of 0");
    // The user of an image is another one on the host.
    let user = IdMap::around(1000, 1003, &[range(100_000, 65536)]);
    assert_eq!(user.text(), "1000 1003 1\n0 100000 1000\n1001 101000 64536\n");
    assert_eq!(user.outside(1000), Some(1003));
    assert_eq!(IdMap::around(1000, 1003, &[]).text(), "1000 1003 1\n");
    let all = IdMap::around(5, 5, &[range(10, u32::MAX - 10), range(6, 4)]);
    assert!(all.extents().iter().all(|extent| extent.inside.checked_add(extent.length).is_some()));
}

#[test]
fn a_program_that_refuses_is_quoted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("newuidmap");
    std::fs::write(&path, "#!/bin/sh\necho \"newuidmap: $*: not allowed\" >&2\nexit 1\n").expect("a program");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    let error =
        run(&path, &IdMap::with_granted(5, &[]).arguments(42), "/linux/uidMappings").expect_err("refused");
    assert_eq!(
        error.to_string(),
        "config.json: /linux/uidMappings: cannot map ids: newuidmap: 42 0 5 1: not allowed"
    );
}

#[test]
fn this_hosts_maps_begin_with_the_user_itself() {
    let maps = IdMaps::rootless(54_321, 54_322).expect("maps of a user nobody granted anything");
    assert_eq!((maps.users.text().as_str(), maps.groups.text().as_str()), ("0 54321 1\n", "0 54322 1\n"));
}
