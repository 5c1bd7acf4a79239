// Bundles the extension into dist/: its own code, the plan's schema, and the licences of what is bundled.
// `--tests` bundles the tests instead, `--web` the extension for VS Code for the Web as dist/web/, a directory to package.

import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");
process.chdir(here);

/** The names of the fields of a map in a schema, which say whose a file is. */
function fields(kind, definition) {
    const schema = JSON.parse(readFileSync(join("..", "..", "schemas", `${kind}.v1.schema.json`), "utf8"));
    return Object.keys((definition ? schema.$defs[definition] : schema).properties);
}

const common = {
    define: { FIELDS: JSON.stringify({ job: fields("job"), role: fields("job", "Role"), targets: fields("targets") }) },
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
    copyTexts(here, metafile);
}

/** README.md as a page of an extension, which shows pictures of the web alone: those of the documentation's site, if there is one. */
function readme(site) {
    const text = readFileSync("README.md", "utf8");
    return site ? text.replaceAll("../../docs/images/", `${site}/images/`) : text.replace(/^!\[[^\]]*\]\(\.\.\/\.\.\/docs\/images\/.*\n\n/gm, "");
}

/** What every package has in dist/ besides its code. */
function copyTexts(root, metafile) {
    const dist = join(root, "dist");
    // For `plan.json`; jobs and targets are the server's.
    const schema = "plan.v1.schema.json";
    cpSync(join("..", "..", "schemas", schema), join(dist, "schemas", schema));
    for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) {
        cpSync(join("..", "..", name), join(dist, name));
    }
    writeFileSync(join(dist, "README.md"), readme(process.env.JOBC_SITE));
    const line = `${"-".repeat(80)}\n`;
    writeFileSync(join(dist, "third-party-licences.txt"), licences([metafile]).join(line));
}

/** A package of its own, which marketplaces offer to browsers alone: the module is four times as large as the rest. */
async function bundleWeb() {
    const wasm = join("..", "..", "target", "web", "jobc.wasm");
    if (!existsSync(wasm)) {
        throw new Error("target/web/jobc.wasm is not built; `editors/web/build --wasm` builds it");
    }
    const web = join(dist, "web");
    const browser = { ...common, platform: "browser", target: "es2022", mainFields: ["browser", "module", "main"], minify: true };
    const { metafile } = await build({ ...browser, entryPoints: ["src/browser.ts"], outfile: join(web, "dist", "browser.js"), external: ["vscode"] });
    await build({ ...browser, entryPoints: [join("..", "web", "src", "worker.ts")], outfile: join(web, "dist", "worker.js"), format: "iife" });
    cpSync(wasm, join(web, "dist", "jobc.wasm"));
    copyTexts(web, metafile);
    for (const name of ["CHANGELOG.md", "LICENSE.md", "images", "syntaxes", "walkthrough"]) {
        cpSync(name, join(web, name), { recursive: true });
    }
    cpSync(join(web, "dist", "README.md"), join(web, "README.md"));
    const manifest = JSON.parse(readFileSync("package.json", "utf8"));
    const { main, scripts, devDependencies, ...rest } = manifest;
    const limited = "Jobs are checked, completed and planned in the browser; building and running them needs VS Code on a desktop.";
    rest.capabilities.virtualWorkspaces = { supported: "limited", description: limited };
    // What needs a program.
    const programs = ["jobc.build", "jobc.check", "jobc.run"];
    const { contributes } = rest;
    delete contributes.taskDefinitions;
    delete contributes.problemMatchers;
    for (const [menu, entries] of Object.entries({ commands: contributes.commands, ...contributes.menus })) {
        const kept = entries.filter(({ command }) => !programs.includes(command));
        (menu === "commands" ? contributes : contributes.menus)[menu] = kept;
    }
    writeFileSync(join(web, "package.json"), JSON.stringify({ ...rest, browser: "./dist/browser.js" }, null, 2));
}

const [tests, web] = ["--tests", "--web"].map((option) => process.argv.includes(option));
rmSync(tests ? join(dist, "test") : web ? join(dist, "web") : dist, { recursive: true, force: true });
await (tests ? bundleTests() : web ? bundleWeb() : bundleExtension());
