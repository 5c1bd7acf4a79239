"""Checks how Compose files are merged: files that are read together mean the same as the one file that `docker-compose config` makes of them."""

import subprocess

import pytest
import yaml

import artifacts
import needs

BASE = """
x-common: &common
  restart: "no"
  labels: {team: vision}
services:
  base:
    image: python:3.12-slim
    environment: {LEVEL: info, MODE: base}
    volumes: [./lib:/app, cache:/root/.cache]
    dns: [1.1.1.1]
  web:
    <<: *common
    extends: base
    command: python -m http.server "8080"
    environment: [MODE=plain, URL=http://db:5432/]
    ports: ["8080:8080", "9000"]
    depends_on: [db]
    cap_add: [SYS_NICE]
    healthcheck: {test: [CMD, curl, localhost], interval: 5s}
  db:
    image: postgres:16
    env_file: db.env
    healthcheck: {test: pg_isready, interval: 5s, timeout: 1m30s}
    mem_limit: 1g
  debug:
    image: busybox
    profiles: [debug]
volumes: {cache: {}}
"""
OVER = """
services:
  web:
    command: [python, app.py]
    environment: {MODE: debug, EXTRA: "1"}
    volumes: [./other:/app:ro, ./more:/more]
    ports: ["8080:8080", "7000:7000"]
    cap_add: [SYS_NICE, NET_ADMIN]
    dns: [8.8.8.8]
    ulimits: {nofile: 1024}
    depends_on: {db: {condition: service_healthy}}
  db:
    mem_limit: 2g
    stop_grace_period: 1m
"""
ELSEWHERE = """
services:
  web:
    extends: {file: shared/base.yaml, service: python}
    command: sleep 1
    environment: [MODE=plain]
    volumes: ["./own:/own"]
"""
SHARED = """
services:
  python:
    extends: {service: root}
    env_file: [common.env]
    volumes: ["./data:/data"]
  root:
    build: {context: ./image, args: {A: b}}
    environment: {MODE: shared, LEVEL: info}
"""
FILES = {"compose.yaml": BASE, "over.yaml": OVER, "elsewhere.yaml": ELSEWHERE, "shared/base.yaml": SHARED, "db.env": "POSTGRES_DB=shop\n",
         "shared/common.env": "COMMON=1\n", "shared/image/Dockerfile": "FROM scratch\n", "compose.override.yaml": OVER}


def run(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def plain(value):
    """A value without what has no meaning: the order of capabilities, and `./` before a path."""
    if isinstance(value, dict):
        return {key: sorted(item) if key in ("add", "drop") else plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.removeprefix("./") if isinstance(value, str) else value


def job(directory, *arguments):
    """The job that jobc makes of files, with paths of the directory as relative ones."""
    text = run([artifacts.program(), "import", *arguments], directory)
    return plain(yaml.safe_load(text.replace(f"{directory}/", "./")))


@pytest.mark.parametrize(("files", "arguments"), [
    (["compose.yaml"], ["-f", "compose.yaml"]), (["compose.yaml", "over.yaml"], ["-f", "compose.yaml", "-f", "over.yaml"]),
    (["compose.yaml", "compose.override.yaml"], ["compose.yaml"]), (["elsewhere.yaml"], ["elsewhere.yaml"]),
    (["compose.yaml", "over.yaml", "--profile", "debug"], ["compose.yaml", "-f", "over.yaml", "--profile", "debug"]),
], ids=["one", "two", "override", "extends", "profile"])
def test_files_mean_what_docker_compose_makes_of_them(tmp_path, files, arguments):
    compose = needs.tool("docker-compose")
    directory = tmp_path / "shop"
    for name, text in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    names = [part for name in files if name.endswith(".yaml") for part in ("-f", name)]
    options = files[len(names) // 2:]
    (directory / "whole.yaml").write_text(run([compose, *names, *options, "config"], directory))
    profile = options and ["--profile", options[1]]
    assert job(directory, *arguments) == job(directory, "whole.yaml", *profile)
