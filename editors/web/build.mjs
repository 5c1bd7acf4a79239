// Bundles the page into target/web: its code, Monaco, the worker, and the examples. `build` puts the module beside them.

import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

import { licenses } from "./licenses.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const repository = join(here, "..", "..");
const site = join(repository, "target", "web");
process.chdir(here);

/** What the examples write, and what is about them and not of them. */
const LEFT_OUT = new Set(["out", "work", "runs", "README.md"]);

/** Every file and directory below a directory. */
function walk(directory) {
    return readdirSync(directory, { withFileTypes: true })
        .filter(({ name }) => !LEFT_OUT.has(name))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .flatMap((entry) => {
            const path = join(directory, entry.name);
            return entry.isDirectory() ? [{ path, isDirectory: true }, ...walk(path)] : [{ path, isDirectory: false }];
        });
}

function examples() {
    const root = join(repository, "examples");
    const directories = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const all = directories.flatMap(({ name }) => {
        const directory = join(root, name);
        const found = walk(directory).map(({ path, isDirectory }) => ({ path: relative(directory, path), isDirectory }));
        const files = found.filter(({ isDirectory }) => !isDirectory).map(({ path }) => [path, readFileSync(join(directory, path), "utf8")]);
        const main = files.map(([path]) => path).find((path) => /^job\.(ya?ml|json)$/.test(path));
        // A repository of many jobs is too large for the page; plug-ins and templates are no jobs.
        if (main === undefined) {
            return [];
        }
        const title = /^# (.*)$/m.exec(readFileSync(join(directory, "README.md"), "utf8"))?.[1] ?? name;
        return { name, title, main, files: Object.fromEntries(files), directories: found.filter(({ isDirectory }) => isDirectory).map(({ path }) => path) };
    });
    // The page begins with the one that the documentation begins with.
    const first = "resnet-1gpu";
    return all.sort((a, b) => (b.name === first) - (a.name === first) || (a.name < b.name ? -1 : 1));
}

mkdirSync(site, { recursive: true });
for (const name of readdirSync(site)) {
    if (name !== "jobc.wasm") {
        rmSync(join(site, name), { recursive: true });
    }
}
const common = { absWorkingDir: here, bundle: true, format: "esm", target: "es2023", minify: true, metafile: true, logLevel: "warning", legalComments: "none", outdir: site };
const results = await Promise.all([
    build({ ...common, entryPoints: ["src/main.ts"], assetNames: "[name]", loader: { ".ttf": "file" } }),
    build({ ...common, entryPoints: { worker: "src/worker.ts", "editor.worker": "src/editor/editor.worker.ts" } }),
]);
// `main.ts` imports no style of its own, so that the page is drawn before its code arrives.
const monaco = readFileSync(join(site, "main.css"), "utf8");
writeFileSync(join(site, "main.css"), readFileSync("src/main.css", "utf8") + monaco);
cpSync(join("src", "icon.svg"), join(site, "icon.svg"));
// The documentation's address, if the build has one.
const documentation = process.env.JOBC_SITE;
const index = readFileSync(join("src", "index.html"), "utf8");
writeFileSync(join(site, "index.html"), documentation ? index.replace("<h1>jobc ", `<h1><a href="${documentation}">jobc</a> `) : index);
writeFileSync(join(site, "examples.json"), JSON.stringify(examples()));
writeFileSync(join(site, "third-party-licenses.txt"), licenses(results.map(({ metafile }) => metafile)));

// Last, for it names every file that the page needs without a network.
const files = readdirSync(site).filter((name) => name !== "third-party-licenses.txt").sort();
const hash = createHash("sha256");
for (const name of files) {
    hash.update(`${name}\0`).update(readFileSync(join(site, name)));
}
const define = { FILES: JSON.stringify(["./", ...files]), VERSION: JSON.stringify(hash.digest("hex").slice(0, 16)) };
await build({ ...common, entryPoints: ["src/offline.ts"], format: "iife", metafile: false, define });
