"""Tests `ADD` of Git repositories and contexts from Git, by git-http-backend behind TLS and by a real sshd on loopback."""

import shutil

import pytest

import web
from home import assert_result
from remote import Builder, agent, repository, ssh_home, ssh_server

pytestmark = [pytest.mark.duration(10), pytest.mark.needs("git", "openssl")]

FILES = {"file": "main\n", "dir/Dockerfile": "FROM scratch\nCOPY x /x\n", "dir/x": "x\n", ".gitattributes": "* filter=run\n"}


class Repositories(Builder):
    """A builder that trusts the certificate of a server with the repositories `main` and `strange`."""

    def __init__(self, directory, ca, root, server):
        super().__init__(directory)
        self.home.environment["SSL_CERT_FILE"] = str(ca / "ca.pem")
        self.server, self.address, self.mark = server, f"{server.url}/git/main.git", directory / "mark"
        inner = repository(root, "inner", {"file": "inner\n"})
        self.commit = repository(root, "main", FILES, submodule=(f"{server.url}/git/inner.git", inner))
        repository(root, "strange", {"file": "x\n"}, submodule=(f"file://{root}/inner.git", inner))
        # Were the user's configuration read, each command would leave a mark.
        (self.home.directory / ".gitconfig").write_text(f"[core]\n\tfsmonitor = touch {self.mark}\n\thooksPath = {directory}/hooks\n"
                                                        f"[filter \"run\"]\n\tsmudge = touch {self.mark}; cat\n[protocol]\n\tallow = always\n")
        hook = directory / "hooks/post-checkout"
        hook.parent.mkdir()
        hook.write_text(f"#!/bin/sh\ntouch {self.mark}\n")
        hook.chmod(0o755)

    def add(self, words, **environment):
        """Builds an image with `ADD`, in which `{main}` and `{strange}` are the addresses of the repositories and `{commit}` a commit."""
        return self.run(f"FROM scratch\nADD {words.format(main=self.address, strange=f'{self.server.url}/git/strange.git', commit=self.commit)}\n", **environment)

    def content(self, result):
        """The files of an image that was built, with their content."""
        assert_result(result)
        return {path: content for path, (_, content) in self.files(result).items()}


@pytest.fixture(scope="module")
def module_builder(shared, ca):
    root = shared / "repositories"
    root.mkdir()
    with web.Web(ca, git=root) as server:
        yield Repositories(shared, ca, root, server)


@pytest.fixture
def builder(module_builder):
    """A builder with a server; no command of the user's configuration runs, and nothing is left."""
    yield module_builder
    assert not module_builder.mark.exists() and not module_builder.left()


@pytest.mark.parametrize("fragment, expected", [("", b"main\n"), ("#other", b"other\n"), ("#v1", b"main\n"), ("#{commit}", b"main\n")],
                         ids=["default_branch", "branch", "tag", "commit"])
def test_a_repository_is_added_with_its_submodule_and_without_git(builder, fragment, expected):
    result = builder.add(f"{{main}}{fragment} /src")
    assert_result(result)
    found = builder.files(result)
    entry, content = found["src/file"]
    assert (content, entry.mode & 0o7777, entry.uid, entry.mtime) == (expected, 0o644, 0, web.MODIFIED)
    assert not [path for path in found if ".git" in path.split("/")]
    assert found["src/sub/file"][1] == b"inner\n"


def test_a_commit_is_fetched_once(builder):
    assert_result(builder.add("{main}#{commit} /src"))
    before = len(builder.server.requests)
    assert_result(builder.add("{main}#{commit} /src"))
    assert len(builder.server.requests) == before


def test_a_directory_of_a_repository_is_added(builder):
    assert builder.content(builder.add("--keep-git-dir {main}#v1:dir /src")).keys() == {"src", "src/Dockerfile", "src/x"}


def test_the_git_directory_is_kept_if_requested(builder):
    assert "src/.git/HEAD" in builder.content(builder.add("--keep-git-dir {main}#v1 /src"))


def test_a_checksum_is_the_commit(builder):
    assert_result(builder.add("--checksum={commit} {main}#v1 /src"))
    assert_result(builder.add("--checksum={commit} {main}#other /src"), 1, f"does not match: expected `{builder.commit}`")


@pytest.mark.parametrize("words, texts, environment", [
    ("{main}#none /src", ["no branch or tag `none`"], {}),
    ("{main}#main:none /src", ["no directory `none`"], {}),
    ("{strange} /src", ["clone of 'file://", "`https://` and `ssh://` only"], {}),
    ("{main} /src", ["ls-remote", "certificate"], {"SSL_CERT_FILE": None}),
    ("{main}#--upload-pack=x /src", ["invalid git reference"], {}),
    ("{main} /src", ["`git` is not installed"], {"PATH": "/nonexistent"}),
], ids=["branch", "directory", "submodule_of_a_strange_protocol", "unknown_certificate", "reference_like_an_option", "without_git"])
def test_a_repository_that_cannot_be_added_is_reported(builder, words, texts, environment):
    assert_result(builder.add(words, **environment), 1, *texts)


def test_a_context_is_a_directory_of_a_repository(builder):
    assert builder.content(builder.run("", context=f"{builder.address}#{builder.commit}:dir"))["x"] == b"x\n"
    assert_result(builder.run("", "-f", "dir/Dockerfile", context=builder.address), 1, "no such file or directory")


def test_a_context_that_is_not_there_is_reported(builder):
    missing = builder.run("", context=f"{builder.address}#none")
    assert_result(missing, missing.returncode or 1, "no branch or tag `none`")
    assert_result(builder.run("", context="http://localhost:1/x.tar.gz"), 2, "is not supported")


@pytest.fixture(scope="module")
def by_ssh(shared):
    """A builder with an agent, and a server whose repository `main` has a submodule; the user's own ~/.ssh is hidden."""
    directory = shared / "by-ssh"
    directory.mkdir()
    builder, root = Builder(directory), directory / "repositories"
    root.mkdir()
    home, builder.entering = ssh_home(directory)
    with agent(directory) as (path, builder.key), ssh_server(directory, builder.key) as (port, known):
        builder.root, builder.ssh, builder.known, builder.agent = root, home, known, {"SSH_AUTH_SOCK": str(path)}
        builder.address = f"ssh://root@127.0.0.1:{port}{root}"
        inner = repository(root, "inner", {"file": "inner\n"})
        repository(root, "main", {"file": "main\n"}, submodule=(f"{builder.address}/inner.git", inner))
        builder.add = f"FROM scratch\nADD {builder.address}/main.git#v1 /src\n"
        yield builder


@pytest.fixture
def ssh(by_ssh):
    """The same, when the host is known."""
    (by_ssh.ssh / "known_hosts").write_text(by_ssh.known)
    return by_ssh


@pytest.mark.needs("sshd", "ssh-agent")
class TestSsh:
    """Repositories by ssh: the key is the agent's, and only hosts that the user knows are trusted."""

    def test_only_a_host_that_is_known_is_trusted(self, ssh):
        (ssh.ssh / "known_hosts").unlink()
        assert_result(ssh.run(ssh.add, "--ssh", "default", **ssh.agent), 1, "Host key verification failed", "known_hosts")
        (ssh.ssh / "known_hosts").write_text(ssh.known.replace("AAAA", "AAAB", 1))
        assert_result(ssh.run(ssh.add, "--ssh", "default", **ssh.agent), 1, "ls-remote", "known_hosts")

    def test_the_users_own_keys_are_not_used(self, ssh):
        assert_result(ssh.run(ssh.add), 1, "Permission denied", "--ssh default")
        # Even with a key in the home directory, only the agent's keys are used.
        shutil.copy2(ssh.key, ssh.ssh / "id_ed25519")
        assert_result(ssh.run(ssh.add), 1, "Permission denied", "--ssh default")

    def test_a_repository_and_its_submodule_are_added_by_an_agent_or_a_key(self, ssh):
        result = ssh.run(ssh.add, "--ssh", "default", **ssh.agent)
        assert_result(result)
        found = ssh.files(result)
        assert (found["src/file"][1], found["src/sub/file"][1]) == (b"main\n", b"inner\n")
        assert_result(ssh.run(ssh.add, "--no-cache", "--ssh", f"default={ssh.key}"))

    def test_the_form_of_scp_is_a_repository(self, ssh):
        # This form has no port: what counts is that it is taken for a repository, and not for the path of a file.
        other = ssh.run(f"FROM scratch\nADD git@127.0.0.1:{ssh.root}/main.git#other /src\n", "--ssh", "default", **ssh.agent)
        assert_result(other, 1, "`git ls-remote` for `git@127.0.0.1:", "failed")

    def test_a_context_comes_by_ssh(self, ssh):
        repository(ssh.root, "context", {"Dockerfile": "FROM scratch\nCOPY x /x\n", "x": "by ssh\n"})
        result = ssh.run("", "--ssh", "default", context=f"{ssh.address}/context.git#main", **ssh.agent)
        assert_result(result)
        assert ssh.files(result)["x"][1] == b"by ssh\n"
