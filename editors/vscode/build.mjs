// Bundles the extension into dist/: its own code, the servers for fields, schemas, and the licences of what is bundled.
// `--tests` bundles the tests instead.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");
process.chdir(here);

const common = {
    bundle: true,
    platform: "node",
    target: "node20",
    format: "cjs",
    metafile: true,
    logLevel: "warning",
    // The UMD files of these packages load their parts by a name that no bundler sees; their ES modules do not.
    mainFields: ["module", "main"],
    legalComments: "none",
};

/** Formatting is jobc's, so the formatter that yaml-language-server would bring, most of its weight, is left out. */
const withoutPrettier = {
    name: "without-prettier",
    setup(build) {
        build.onResolve({ filter: /^prettier\// }, ({ path }) => ({ path, namespace: "left-out" }));
        build.onLoad({ filter: /.*/, namespace: "left-out" }, () => ({
            contents: 'exports.format = () => { throw new Error("there is no formatter in this package"); };',
        }));
    },
};

/** The licence of every package in a bundle, each once. */
function licences(metafiles) {
    const folders = metafiles.flatMap(({ inputs }) =>
        Object.keys(inputs).flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
    );
    return [...new Set(folders)].sort().map((folder) => {
        const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
        const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
        const text = file ? readFileSync(join(folder, file), "utf8").trim() : "(the package has no licence file)";
        return `${name} ${version}, ${license}\n\n${text}\n`;
    });
}

async function bundleTests() {
    const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
    await build({ ...common, entryPoints: tests.map((name) => join("test", name)), outdir: join(dist, "test"), sourcemap: "inline" });
}

async function bundleExtension() {
    const results = await Promise.all([
        build({ ...common, entryPoints: ["src/extension.ts"], outfile: join(dist, "extension.js"), external: ["vscode"], minify: true }),
        build({ ...common, entryPoints: ["src/yamlFieldServer.ts"], outfile: join(dist, "yaml-field-server.js"), plugins: [withoutPrettier], minify: true }),
        build({ ...common, entryPoints: ["src/jsonFieldServer.ts"], outfile: join(dist, "json-field-server.js"), minify: true }),
    ]);
    for (const name of ["job.v1", "targets.v1", "plan.v1"]) {
        cpSync(join("..", "..", "schemas", `${name}.schema.json`), join(dist, "schemas", `${name}.schema.json`));
    }
    mkdirSync(join(dist, "l10n"), { recursive: true });
    cpSync("node_modules/yaml-language-server/l10n/bundle.l10n.json", join(dist, "l10n", "bundle.l10n.json"));
    for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) {
        cpSync(join("..", "..", name), join(dist, name));
    }
    const line = `${"-".repeat(80)}\n`;
    writeFileSync(join(dist, "third-party-licences.txt"), licences(results.map(({ metafile }) => metafile)).join(line));
}

const tests = process.argv.includes("--tests");
rmSync(tests ? join(dist, "test") : dist, { recursive: true, force: true });
await (tests ? bundleTests() : bundleExtension());
