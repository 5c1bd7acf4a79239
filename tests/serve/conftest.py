import pytest

from service import Service, remove


@pytest.fixture
def make(tmp_path_factory):
    """Makes servers that end with the test."""
    made = []

    def service(*options, **more):
        directory = tmp_path_factory.mktemp("serve")
        made.append(Service(directory, *options, **more))
        return made[-1]

    yield service
    for one in made:
        one.stop()
        end_jobs(one)
        remove(one.directory)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A server that the tests of a module share."""
    one = Service(tmp_path_factory.mktemp("serve"))
    yield one
    one.stop()
    end_jobs(one)
    remove(one.directory)


def end_jobs(one):
    names = one.jobc("ps", "--quiet").stdout.split()
    if names:
        one.jobc("rm", "--force", *names)
