// Bundles the page into dist, with a hash in each name but that of index.html, and compresses it.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { licenses } from "../../editors/web/licenses.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");
process.chdir(here);

/** The largest size of all files together, compressed. */
const MAX = 3_000_000;

const common = {
    absWorkingDir: here,
    bundle: true,
    format: "esm",
    target: "es2023",
    minify: true,
    metafile: true,
    write: false,
    logLevel: "warning",
    legalComments: "none",
    outdir: dist,
    assetNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    entryNames: "[name]-[hash]",
    loader: { ".ttf": "file", ".svg": "file" },
    jsx: "automatic",
    jsxImportSource: "preact",
    publicPath: "/",
};
const worker = await build({ ...common, entryPoints: { "editor.worker": "../../editors/web/src/editor/editor.worker.ts" } });
const workerName = basename(worker.outputFiles[0].path);
// Monaco gives its files a URL of the page, whose name has a hash.
const page = await build({ ...common, splitting: true, entryPoints: { main: "src/main.tsx", style: "src/style/main.css" }, define: { EDITOR_WORKER: JSON.stringify(`/${workerName}`) } });
const files = new Map([...worker.outputFiles, ...page.outputFiles].map(({ path, contents }) => [basename(path), Buffer.from(contents)]));
const named = (name, content) => {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 8);
    const full = name.replace(/\.(\w+)$/, `-${hash}.$1`);
    files.set(full, content);
    return full;
};
const find = (pattern) => [...files.keys()].find((name) => pattern.test(name));
const icon = named("icon.svg", readFileSync("../../editors/web/src/icon.svg"));
const index = readFileSync("src/index.html", "utf8")
    .replace("ICON", icon)
    .replace("EDITOR", find(/^main-\w+\.css$/))
    .replace("STYLE", find(/^style-\w+\.css$/))
    .replace("MAIN", find(/^main-\w+\.js$/));
// Styles that a part of the code imports are in those of the entry too.
for (const name of files.keys()) {
    if (name.endsWith(".css") && !/^(main|style)-/.test(name)) {
        files.delete(name);
    }
}
files.set("index.html", Buffer.from(index));
files.set("third-party-licenses.txt", Buffer.from(licenses([worker.metafile, page.metafile])));

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
let total = 0;
for (const [name, content] of files) {
    const compressed = gzipSync(content, { level: 9 });
    total += compressed.length;
    writeFileSync(join(dist, `${name}.gz`), compressed);
}
if (total > MAX) {
    console.error(`serve/page/build: the page has ${total} bytes, at most ${MAX} are allowed`);
    process.exit(1);
}
