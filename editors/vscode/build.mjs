// Bundles the extension into dist/: its own code, the plan's schema, and the licences of what is bundled.
// `--tests` bundles the tests instead.

import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

/** The licence of every package in a bundle, each once. */
function licences(metafiles) {
    const directories = metafiles.flatMap(({ inputs }) =>
        Object.keys(inputs).flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
    );
    return [...new Set(directories)].sort().map((directory) => {
        const { name, version, license } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
        const file = readdirSync(directory).find((entry) => /^licen[cs]e/i.test(entry));
        const text = file ? readFileSync(join(directory, file), "utf8").trim() : "(the package has no licence file)";
        return `${name} ${version}, ${license}\n\n${text}\n`;
    });
}

async function bundleTests() {
    const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
    await build({ ...common, entryPoints: tests.map((name) => join("test", name)), outdir: join(dist, "test"), sourcemap: "inline" });
}

async function bundleExtension() {
    const { metafile } = await build({ ...common, entryPoints: ["src/extension.ts"], outfile: join(dist, "extension.js"), external: ["vscode"], minify: true });
    // For `plan.json`; jobs and targets are the server's.
    const schema = "plan.v1.schema.json";
    cpSync(join("..", "..", "schemas", schema), join(dist, "schemas", schema));
    for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) {
        cpSync(join("..", "..", name), join(dist, name));
    }
    // A page of an extension shows pictures of the web alone; the documentation's site has them.
    const readme = readFileSync("README.md", "utf8").replaceAll("../../docs/images/", "https://jobc.dev/images/");
    writeFileSync(join(dist, "README.md"), readme);
    const line = `${"-".repeat(80)}\n`;
    writeFileSync(join(dist, "third-party-licences.txt"), licences([metafile]).join(line));
}

const tests = process.argv.includes("--tests");
rmSync(tests ? join(dist, "test") : dist, { recursive: true, force: true });
await (tests ? bundleTests() : bundleExtension());
