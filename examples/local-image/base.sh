#!/bin/sh
# Writes a small root file system as a tar archive: this machine's bash, a few programs and the libraries that they need.
set -eu
root=$(mktemp -d)
trap 'rm -r "$root"' EXIT
mkdir -p "$root/bin" "$root/etc" "$root/tmp"
for name in bash cat head ls printf rm sort tail uniq wc; do
    program=$(command -v "$name" || true)
    case $program in
    /*) ;;
    *) program=/usr/bin/$name ;;
    esac
    cp -L "$program" "$root/bin/$name"
    # A library has its path after `=>`, the loader at the beginning of its line.
    ldd "$program" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$root${library%/*}"
        cp -L "$library" "$root$library"
    done
done
ln -s bash "$root/bin/sh"
echo 'root:x:0:0:root:/:/bin/bash' > "$root/etc/passwd"
echo 'root:x:0:' > "$root/etc/group"
tar -C "$root" -cf - .
