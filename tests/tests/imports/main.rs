//! Who imports whom: between the crates, between the modules of a crate, and from libraries, as ARCHITECTURE.md says.

mod backends;
mod circles;
mod homes;
mod order;
mod packages;
mod page;
mod source;
mod tokens;
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

fn fine(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn crates_depend_on_each_other_in_the_order_of_the_architecture() {
    let order = order::Order::read(&page("ARCHITECTURE.md"));
    let packages = packages::packages();
    // The imports are asked only where there is something to show.
    if !order.check(&packages, &[]).is_empty() {
        fine(&order.check(&packages, &trees()));
    }
}

#[test]
fn imports_form_no_circle() {
    fine(&trees().iter().flat_map(circles::circles).collect::<Vec<_>>());
}

#[test]
fn backends_stand_by_themselves() {
    fine(&backends::backends(&tree("jobc-compiler")));
}

#[test]
fn libraries_are_named_where_the_architecture_says() {
    let trees = trees();
    let homes = homes::libraries(&page("ARCHITECTURE.md"));
    fine(&homes.iter().flat_map(|home| home.check(&trees)).collect::<Vec<_>>());
}

#[test]
fn unsafe_stands_where_the_architecture_says() {
    fine(&homes::of_unsafe(&page("ARCHITECTURE.md")).check(&trees()));
}

#[test]
fn packages_are_as_many_as_the_page_says() {
    let backends = "dockerfile,oci,cgroup,kubernetes,openpai";
    let compiler = packages::built_of("jobc-compiler", None);
    let program = packages::built_of("jobc", Some(backends));
    let registry = packages::built_of("jobc", None) - program;
    let locked = packages::locked(&page("Cargo.lock"));
    let text = page("docs/internals/dependencies.md").replace('\n', " ");
    let said = [
        format!("jobc-compiler {compiler} crates"),
        format!("the `jobc` binary {program} without the feature `registry`"),
        format!("adds {registry} crates to the program"),
        format!("{locked} packages are in the lock file"),
    ];
    let wrong = said
        .into_iter()
        .filter(|said| !text.contains(said))
        .map(|said| format!("docs/internals/dependencies.md should say: {said}"));
    fine(&wrong.collect::<Vec<_>>());
}
