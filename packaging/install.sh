#!/bin/sh
# Installs jobc, or a newer version of it, or removes it. It needs curl or wget, tar, gzip and a program for SHA-256 sums.
#
# usage: sh install.sh [--version X.Y.Z] [--prefix DIR]
#        sh install.sh --remove [--prefix DIR]
#
#   --version X.Y.Z  version to install [default: the latest release]
#   --prefix DIR     where to install [default: /usr/local as root, else ~/.local]
#   --remove         remove jobc; job records and images stay
#   JOBC_DOWNLOAD    environment variable: address of the releases; packaging/README.md describes the files below it
#
# Nothing is unpacked before its SHA-256 sum is verified. All of the script is in functions, so that a part of it does nothing.
set -eu

# The release workflow writes the address of the releases here.
releases=

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

download() { # download URL FILE
    if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --retry 2 --max-time 600 --output "$2" "$1"
    elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$1"
    else
        fail "neither \`curl\` nor \`wget\` is installed"
    fi || fail "cannot download $1"
}

sum_of() { # sum_of FILE
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum <"$1"
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 <"$1"
    elif command -v openssl >/dev/null 2>&1; then
        openssl dgst -sha256 -r <"$1"
    else
        fail "no program for SHA-256 sums: install \`sha256sum\`, \`shasum\` or \`openssl\`"
    fi | cut -d ' ' -f 1
}

platform() {
    machine=$(uname -m)
    case $machine in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) fail "no release for \`$machine\`; build jobc from source" ;;
    esac
    case $(uname -s) in
        Linux) echo "$machine-linux" ;;
        Darwin) echo "$machine-macos" ;;
        *) fail "no release for \`$(uname -s)\`; build jobc from source" ;;
    esac
}

# The list of installed files and directories, relative to the prefix; directories end with `/` and come after their files.
list=share/jobc/installed

remove_listed() { # remove_listed LIST: files and empty directories below $prefix
    while IFS= read -r name; do
        case $name in
            /* | ../* | */../* | "") fail "invalid line in $prefix/$list: $name" ;;
            ./) rmdir "$prefix" 2>/dev/null || true ;;
            */) rmdir "$prefix/$name" 2>/dev/null || true ;;
            *) rm -f "$prefix/$name" ;;
        esac
    done <"$1"
}

remove() {
    [ -f "$prefix/$list" ] || fail "install.sh has not installed jobc in \`$prefix\`"
    cp "$prefix/$list" "$scratch/installed"
    remove_listed "$scratch/installed"
    echo "removed jobc from $prefix"
}

install() {
    base=${JOBC_DOWNLOAD:-$releases}
    [ -n "$base" ] || fail "no address of releases; set JOBC_DOWNLOAD"
    platform=$(platform)
    if [ -z "$version" ]; then
        download "$base/latest/download/SHA256SUMS" "$scratch/latest"
        version=$(sed -n "s/^[0-9a-f]* [ *]jobc-\(.*\)-$platform\.tar\.gz\$/\1/p" "$scratch/latest")
        [ -n "$version" ] || fail "the latest release has no archive for $platform"
    fi
    case $version in
        *[!0-9A-Za-z.-]* | -* | .*) fail "invalid version \`$version\`" ;;
    esac
    name=jobc-$version-$platform
    download "$base/download/v$version/SHA256SUMS" "$scratch/sums"
    expected=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$name\.tar\.gz\$/\1/p" "$scratch/sums")
    [ -n "$expected" ] || fail "no SHA-256 sum of $name.tar.gz in $base/download/v$version/SHA256SUMS"
    download "$base/download/v$version/$name.tar.gz" "$scratch/archive"
    actual=$(sum_of "$scratch/archive")
    [ "$actual" = "$expected" ] || fail "wrong SHA-256 sum of $name.tar.gz: $actual, expected $expected; nothing was installed"

    mkdir "$scratch/tree"
    (cd "$scratch/tree" && tar -xzof ../archive)
    tree=$scratch/tree/$name
    [ -x "$tree/bin/jobc" ] || fail "the archive has no \`bin/jobc\`"
    "$tree/bin/jobc" --version >/dev/null || fail "jobc $version does not run on this host; nothing was installed"
    (cd "$tree" && find . -type f | sed 's,^\./,,' | sort) >"$scratch/files"
    put
    echo "installed jobc $version in $prefix"
    case :$PATH: in
        *":$prefix/bin:"*) ;;
        *) echo "add $prefix/bin to PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
}

put() { # puts the files of $scratch/files below the prefix, each in one step, and removes files of the version before
    # Directories that this script makes are removed with jobc. Those of the version before stay in the list.
    : >"$scratch/made"
    [ ! -f "$prefix/$list" ] || grep '/$' "$prefix/$list" >"$scratch/made" || true
    [ -d "$prefix" ] || echo ./ >"$scratch/made"
    { cat "$scratch/files"; echo "$list"; } | while IFS= read -r name; do
        directory=$(dirname "$name")
        while [ "$directory" != . ] && [ ! -d "$prefix/$directory" ]; do
            echo "$directory/" >>"$scratch/made"
            directory=$(dirname "$directory")
        done
        mkdir -p "$prefix/$(dirname "$name")"
        [ -f "$tree/$name" ] || continue
        new=$prefix/$(dirname "$name")/.jobc.$$
        cp "$tree/$name" "$new"
        mode=644
        [ ! -x "$tree/$name" ] || mode=755
        chmod "$mode" "$new"
        mv -f "$new" "$prefix/$name"
    done
    if [ -f "$prefix/$list" ]; then
        grep -v '/$' "$prefix/$list" | grep -vxF -f "$scratch/files" | grep -vxF "$list" >"$scratch/old" || true
        remove_listed "$scratch/old"
    fi
    # Longer names first: a directory comes before its parent.
    { cat "$scratch/files"; echo "$list"; sort -ru "$scratch/made"; } >"$prefix/$list.new"
    mv -f "$prefix/$list.new" "$prefix/$list"
}

main() {
    version='' prefix='' action=install
    while [ $# -gt 0 ]; do
        case $1 in
            --version) version=${2-} && shift ;;
            --prefix) prefix=${2-} && shift ;;
            --remove) action=remove ;;
            -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0" && exit 0 ;;
            *) fail "unknown option \`$1\`; \`--help\` lists the options" ;;
        esac
        shift
    done
    if [ -z "$prefix" ]; then
        if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
    fi
    umask 022
    export LC_ALL=C
    # The list must have the same meaning for the next run, from another directory.
    case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM
    "$action"
}

main "$@"
