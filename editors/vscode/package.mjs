// Packages the extension.
//
// usage: node package.mjs                    dist/jobc.vsix, for all platforms: it looks for the program, and offers to install it
//        node package.mjs TARGET DIRECTORY   dist/jobc-TARGET.vsix, with the programs of the directory inside
//
// TARGET is a platform as VS Code names it, such as linux-x64 or win32-x64. JOBC_REPOSITORY and JOBC_SITE are the addresses in the
// manifest; without them, marketplaces show no links.

import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const TARGETS = ["linux-x64", "linux-arm64", "alpine-x64", "alpine-arm64", "darwin-x64", "darwin-arm64", "win32-x64"];

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");
const [target, directory] = process.argv.slice(2);
if ((target !== undefined && !TARGETS.includes(target)) || (target === undefined) !== (directory === undefined)) {
    console.error(`usage: node package.mjs [TARGET DIRECTORY], where TARGET is ${TARGETS.join(", ")}`);
    process.exit(2);
}

function run(command, words, cwd) {
    const { status, error } = spawnSync(command, words, { cwd, stdio: "inherit" });
    if (status !== 0) {
        console.error(`\`${command} ${words.join(" ")}\` failed${error ? `: ${error.message}` : ""}`);
        process.exit(1);
    }
}

/** The manifest with the addresses that marketplaces show. */
function manifest() {
    const read = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
    const { JOBC_REPOSITORY: repository, JOBC_SITE: site } = process.env;
    delete read.scripts;
    delete read.devDependencies;
    if (repository) {
        Object.assign(read, { repository: { type: "git", url: repository }, bugs: { url: `${repository}/issues` }, homepage: repository });
    }
    return site ? { ...read, homepage: site } : read;
}

/** The programs of a platform: `jobc`, and on Linux the one that queries NVIDIA's driver, which a static `jobc` cannot load. */
function programs() {
    const name = target.startsWith("win32") ? "jobc.exe" : "jobc";
    if (!existsSync(join(directory, name))) {
        console.error(`there is no \`${name}\` in \`${directory}\``);
        process.exit(1);
    }
    return [name, "jobc-nvml"].filter((each) => existsSync(join(directory, each)));
}

const found = target === undefined ? [] : programs();
run(process.execPath, ["build.mjs"], here);
const root = join(dist, "package");
rmSync(root, { recursive: true, force: true });
mkdirSync(root, { recursive: true });
for (const name of [".vscodeignore", "CHANGELOG.md", "LICENSE.md", "images", "syntaxes", "walkthrough"]) {
    cpSync(join(here, name), join(root, name), { recursive: true });
}
for (const name of ["extension.js", "schemas", "LICENSE-APACHE", "LICENSE-MIT", "third-party-licences.txt"]) {
    cpSync(join(dist, name), join(root, "dist", name), { recursive: true });
}
cpSync(join(dist, "README.md"), join(root, "README.md"));
writeFileSync(join(root, "package.json"), JSON.stringify(manifest(), null, 2));
for (const name of found) {
    mkdirSync(join(root, "bin"), { recursive: true });
    cpSync(resolve(directory, name), join(root, "bin", name));
    chmodSync(join(root, "bin", name), 0o755);
}
const out = join(dist, target === undefined ? "jobc.vsix" : `jobc-${target}.vsix`);
const vsce = join(here, "node_modules", "@vscode", "vsce", "vsce");
const options = target === undefined ? [] : ["--target", target];
run(process.execPath, [vsce, "package", "--no-dependencies", "--allow-missing-repository", ...options, "--out", out], root);
rmSync(root, { recursive: true });
