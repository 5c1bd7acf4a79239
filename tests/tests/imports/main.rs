//! Checks imports between crates, between the modules of a crate, and from libraries against ARCHITECTURE.md.

mod backends;
mod cycles;
mod order;
mod packages;
mod page;
mod placement;
mod source;
mod tree;

use jobc_tests::workspace;

use tree::Tree;

fn page(name: &str) -> String {
    std::fs::read_to_string(workspace().join(name)).expect("the page is there")
}

fn trees() -> Vec<Tree> {
    packages::packages().iter().map(load).collect()
}

/// The crate of that name.
fn tree(name: &str) -> Tree {
    let packages = packages::packages();
    let found = packages.iter().find(|package| package.name == name);
    load(found.unwrap_or_else(|| panic!("there is no crate {name}")))
}

fn load(package: &order::Package) -> Tree {
    Tree::load(&package.name, &workspace(), package.directory.as_str().into())
}

fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn crates_depend_on_each_other_in_the_order_of_the_architecture() {
    let order = order::Order::read(&page("ARCHITECTURE.md"));
    let packages = packages::packages();
    // Imports are read only to show where a problem is.
    if !order.check(&packages, &[]).is_empty() {
        assert_none(&order.check(&packages, &trees()));
    }
}

#[test]
fn imports_form_no_cycle() {
    assert_none(&trees().iter().flat_map(cycles::cycles).collect::<Vec<_>>());
}

#[test]
fn backends_do_not_import_each_other() {
    assert_none(&backends::backends(&tree("jobc-compiler")));
}

#[test]
fn libraries_are_used_only_where_the_architecture_says() {
    let trees = trees();
    let placements = placement::libraries(&page("ARCHITECTURE.md"));
    assert_none(&placements.iter().flat_map(|placement| placement.check(&trees)).collect::<Vec<_>>());
}

#[test]
fn unsafe_is_used_only_where_the_architecture_says() {
    assert_none(&placement::of_unsafe(&page("ARCHITECTURE.md")).check(&trees()));
}

#[test]
fn the_operating_system_is_asked_for_only_where_the_architecture_says() {
    assert_none(&placement::of_target_os(&page("ARCHITECTURE.md")).check(&[tree("jobc")]));
}

#[test]
fn package_counts_match_the_page() {
    let backends = "dockerfile,oci,cgroup,kubernetes,openpai,slurm";
    let compiler = packages::built_of("jobc-compiler", None);
    let program = packages::built_of("jobc", Some(&format!("{backends},runtime")));
    let with_mcp = packages::built_of("jobc", Some(&format!("{backends},runtime,mcp")));
    let mcp = with_mcp - program;
    let serve = packages::built_of("jobc", None) - with_mcp;
    let locked = packages::locked(&page("Cargo.lock"));
    let text = page("docs/internals/dependencies.md").replace('\n', " ");
    let expected = [
        format!("jobc-compiler {compiler} crates"),
        format!("the `jobc` binary {program} without `jobc mcp` and `jobc serve`"),
        format!("adds {mcp} crates for `jobc mcp`"),
        format!("adds {serve} crates for `jobc serve`"),
        format!("{locked} packages are in the lock file"),
    ];
    let problems = expected
        .into_iter()
        .filter(|sentence| !text.contains(sentence))
        .map(|sentence| format!("docs/internals/dependencies.md should say: {sentence}"));
    assert_none(&problems.collect::<Vec<_>>());
}
