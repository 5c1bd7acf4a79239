// What every test shares: paths, counting and printing of results, skipping without tools.

import { accessSync, constants, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root. */
export const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** The exit code of a skipped test. */
const SKIPPED = 77;

/** The program under test: `JOBC`, else the debug build. */
export const JOBC = process.env.JOBC ?? join(REPOSITORY, "target", "debug", "jobc");

/** One test: counts expectations and prints each failure, then one line with the counts. */
export class Check {
    tried = 0;
    failed = 0;
    notes = [];

    constructor(name) {
        this.name = name;
    }

    /** Counts one expectation; prints the reason if it does not hold. */
    expect(holds, reason) {
        this.tried += 1;
        if (!holds) {
            this.failed += 1;
            console.log(`${this.name}: ${typeof reason === "function" ? reason() : reason}`);
        }
        return holds;
    }

    equal(found, wanted, what) {
        const [left, right] = [JSON.stringify(found), JSON.stringify(wanted)];
        return this.expect(left === right, () => `${what}: ${left} instead of ${right}`);
    }

    /** Adds a note to the last line. */
    note(text) {
        this.notes.push(text);
    }

    /** Exits with 0, or with 1 if anything failed or nothing was checked. */
    end() {
        const notes = this.notes.map((note) => `; ${note}`).join("");
        console.log(`${this.name}: ${this.tried - this.failed} of ${this.tried} hold${notes}`);
        process.exit(this.failed === 0 && this.tried > 0 ? 0 : 1);
    }

    /** Exits because a tool is missing: skipped, or failed if tools are required (`tests/needs.py`). */
    needs(what, installer = "`./test --install`") {
        const required = process.env.JOBC_ORACLES === "required";
        console.log(`${this.name}: ${required ? "missing" : "skipped"}: needs ${what}; ${installer} installs it`);
        process.exit(required ? 1 : SKIPPED);
    }

    /** The path of a program; skips without it. */
    program(name) {
        const paths = name.includes("/") ? [name] : process.env.PATH.split(delimiter).map((directory) => join(directory, name));
        return paths.find(executable) ?? this.needs(name);
    }

    /** An npm package; skips without it. */
    async module(name) {
        try {
            return await import(name);
        } catch (error) {
            return this.needs(name);
        }
    }
}

function executable(path) {
    try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
    } catch {
        return false;
    }
}

/** An empty directory below target/editor for the files of a run, which are kept until the next run. */
export function scratch(name) {
    const place = join(REPOSITORY, "target", "editor", "run", name);
    rmSync(place, { recursive: true, force: true });
    mkdirSync(place, { recursive: true });
    return place;
}

/** Every file below a directory for which `wanted` is true, in a stable order. */
export function files(directory, wanted) {
    return readdirSync(directory, { withFileTypes: true })
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .flatMap((entry) => {
            const path = join(directory, entry.name);
            return entry.isDirectory() ? files(path, wanted) : wanted(path) ? [path] : [];
        });
}

/**
 * Writes the files of the cases in `tests/errors` to a new directory, as `CODE/NAME/FILE`, and returns their paths.
 *
 * A case is a snapshot whose sections before the compiler's output are its files.
 */
export function filesOfCases() {
    const directory = mkdtempSync(join(tmpdir(), "jobc-cases-"));
    process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
    const root = join(REPOSITORY, "tests", "errors");
    for (const snapshot of files(root, (path) => path.endsWith(".snap"))) {
        for (const section of readFileSync(snapshot, "utf8").split("\n==== ").slice(1)) {
            const [name] = section.split("\n", 1);
            if (["options", "short", "text"].includes(name)) {
                break;
            }
            const path = join(directory, relative(root, snapshot).slice(0, -".snap".length), name);
            const text = section.slice(name.length + 1);
            mkdirSync(dirname(path), { recursive: true });
            writeFileSync(path, text === "" ? "" : `${text}\n`);
        }
    }
    return files(directory, () => true);
}

/** A path relative to the repository. */
export function shown(path) {
    return relative(REPOSITORY, path);
}

/** Waits until `get` returns something that is neither false nor null; throws after `seconds` with the last state. */
export async function until(what, get, seconds = 20) {
    const end = Date.now() + seconds * 1000;
    for (;;) {
        const value = await get();
        if (value !== undefined && value !== null && value !== false) {
            return value;
        }
        if (Date.now() > end) {
            throw new Error(`timed out after ${seconds} s: ${typeof what === "function" ? await what() : what}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
}
