import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { candidates, locate } from "../src/locate";

const directory = mkdtempSync(join(tmpdir(), "jobc-locate-"));
after(() => rmSync(directory, { recursive: true }));

/** A program that ends as the script says, in the place where an extension keeps its own. */
function extensionWith(name: string, script: string, mode = 0o755): string {
    const bin = join(directory, name, "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, "jobc"), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, "jobc"), mode);
    return join(directory, name);
}

test("a setting is the only candidate; else the extension's own comes before PATH", () => {
    assert.deepEqual(candidates("/opt/jobc", "/ext", "linux"), ["/opt/jobc"]);
    assert.deepEqual(candidates(" ~/bin/jobc ", "/ext", "linux"), [`${homedir()}/bin/jobc`]);
    const first = (platform: NodeJS.Platform): string[] => candidates("", "/ext", platform).slice(0, 3);
    assert.deepEqual(first("linux"), [join("/ext", "bin", "jobc"), "jobc", join(homedir(), ".local", "bin", "jobc")]);
    assert.deepEqual(first("win32"), [join("/ext", "bin", "jobc.exe"), "jobc.exe", join(homedir(), ".local", "bin", "jobc.exe")]);
    assert.ok(candidates("", "/ext", "darwin").includes("/opt/homebrew/bin/jobc"));
});

test("the extension's own program is taken where it serves", async () => {
    const extension = extensionWith("serves", '[ "$*" = "lsp --help" ]');
    assert.deepEqual(await locate("", extension), { program: join(extension, "bin", "jobc") });
});

test("a program where installers put it is found without PATH", async () => {
    const home = join(directory, "home");
    const bin = join(home, ".local", "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, "jobc"), "#!/bin/sh\n", { mode: 0o755 });
    const { HOME, PATH } = process.env;
    Object.assign(process.env, { HOME: home, PATH: "/usr/bin:/bin" });
    try {
        assert.deepEqual(await locate("", directory), { program: join(bin, "jobc") });
    } finally {
        Object.assign(process.env, { HOME, PATH });
    }
});

test("each way to have no program has its own sentence", async () => {
    const { HOME, PATH } = process.env;
    Object.assign(process.env, { HOME: directory, PATH: "/usr/bin:/bin" });
    try {
        const missing = join(directory, "nowhere");
        assert.deepEqual(await locate(missing, directory), { problem: `the program \`jobc\` was not found: there is no \`${missing}\`` });
        assert.deepEqual(await locate("", directory), { problem: "the program `jobc` was not found: it is not on PATH" });
        const old = extensionWith("old", "exit 2");
        assert.match(JSON.stringify(await locate("", old)), /too old for this extension: it has no command `lsp`/);
        // A program of another system lacks its loader here; one of another host its libraries.
        const foreign = extensionWith("foreign", "");
        writeFileSync(join(foreign, "bin", "jobc"), "#!/nonexistent/loader\n");
        assert.match(JSON.stringify(await locate("", foreign)), /cannot run on this host: it is built for another system/);
        const bare = extensionWith("bare", "echo 'libz.so.9: cannot open shared object file' >&2; exit 127");
        assert.match(JSON.stringify(await locate("", bare)), /cannot run on this host: libz\.so\.9: cannot open shared object file/);
        const elsewhere = join(foreign, "bin");
        Object.assign(process.env, { PATH: `${elsewhere}:/usr/bin:/bin` });
        assert.match(JSON.stringify(await locate("", directory)), /`jobc` cannot run on this host/);
        Object.assign(process.env, { PATH: "/usr/bin:/bin" });
        const locked = extensionWith("locked", "exit 0", 0o644);
        assert.match(JSON.stringify(await locate("", locked)), /cannot be executed: permission denied/);
    } finally {
        Object.assign(process.env, { HOME, PATH });
    }
});
