"""Proves that the tests of this directory can fail: each must reject a mutation of jobc (`mutant/jobc`)."""

import shutil

import pytest

import needs
from harness import REPOSITORY

MUTANT = REPOSITORY / "tests/editor/mutant/jobc"


@pytest.fixture
def rejects(check, jobc):
    """Asserts that a check fails with a mutation."""
    def run(name, *words, mutation="words", **environment):
        with pytest.raises(AssertionError, match=" hold"):
            check(name, *words, JOBC=MUTANT, REAL_JOBC=jobc, MUTATION=mutation, **environment)

    return run


@pytest.mark.parametrize("name, mutation", [("schema", "silent"), ("server", "words"), ("neovim", "words"), ("emacs", "words")])
def test_a_mutation_is_found(rejects, name, mutation):
    rejects(name, mutation=mutation)


def test_a_mutation_is_found_in_vscode(rejects, package):
    rejects("vscode", "mistakes")


def test_a_mutation_is_found_in_the_playground(rejects, tmp_path):
    site, module = REPOSITORY / "target/web", tmp_path / "web/jobc.wasm"
    if not (site / "index.html").exists():
        needs.missing("the playground", "`editors/web/install` and `editors/web/build`")
    shutil.copytree(site, module.parent)
    module.write_bytes(module.read_bytes().replace(b"unknown key", b"nonsuch key"))
    rejects("web", "mistake", JOBC_WEB=module.parent)
