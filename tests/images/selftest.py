"""Proves that the tests of this directory can fail: each runs with a mutation of the unpacker (`mutant`), and must find it."""

from pathlib import Path

import pytest

from mutations import assert_found

pytestmark = [pytest.mark.duration(60), pytest.mark.needs("root", "umoci")]


@pytest.mark.parametrize("mutation, expression", [
    ("owner", "unpacked_as_by_umoci"),
    ("attribute", "unpacked_as_by_umoci"),
    ("trust", "root-a_path_with_.."),
    ("trust", "root-a_link_out"),
    ("left", "root-a_checksum"),
    ("memory", "no_end"),
    ("memory", "large_windows"),
])
def test_a_mutation_is_found(mutation, expression):
    assert_found("images", expression, Path(__file__).with_name("mutant"), JOBC_MUTATION=mutation)
