// What every check shares: where things are, how a check counts and speaks, how it says that a tool is missing.

import { accessSync, constants, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root. */
export const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** The exit code of a check that could not be made. */
const SKIPPED = 77;

/** The program under test: `JOBC`, else the debug build. */
export const JOBC = process.env.JOBC ?? join(REPOSITORY, "target", "debug", "jobc");

/** One check: counts what it tried and prints each failure, then one line for the whole. */
export class Check {
    tried = 0;
    failed = 0;
    notes = [];

    constructor(name) {
        this.name = name;
    }

    /** Counts one thing that must hold; the reason is printed where it does not. */
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
        return this.expect(left === right, () => `${what}: ${left} in place of ${right}`);
    }

    /** What the last line says besides the counts. */
    note(text) {
        this.notes.push(text);
    }

    /** Ends the process: 0, or 1 where anything failed or nothing was tried. */
    end() {
        const notes = this.notes.map((note) => `; ${note}`).join("");
        console.log(`${this.name}: ${this.tried - this.failed} of ${this.tried} hold${notes}`);
        process.exit(this.failed === 0 && this.tried > 0 ? 0 : 1);
    }

    /** Ends the process since something is not installed: aloud, or as a failure where CI says that all must be. */
    skip(reason) {
        const required = process.env.JOBC_ORACLES === "required";
        console.log(`${this.name}: ${required ? "FAILED" : "skipped"}: ${reason}`);
        process.exit(required ? 1 : SKIPPED);
    }

    /** The path of a program; skips without it. */
    program(name) {
        const paths = name.includes("/") ? [name] : process.env.PATH.split(delimiter).map((directory) => join(directory, name));
        return paths.find(executable) ?? this.skip(`\`${name}\` is not there; \`tests/editor/install\` installs editors, \`cargo build\` jobc`);
    }

    /** A package of npm's; skips without it. */
    async module(name) {
        try {
            return await import(name);
        } catch (error) {
            return this.skip(`the package \`${name}\` is not installed (${error.code ?? error.message}); \`tests/editor/install\` installs it`);
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

/** An empty directory below target/editor, for what a run leaves behind to be looked at until the next one. */
export function scratch(name) {
    const place = join(REPOSITORY, "target", "editor", "run", name);
    rmSync(place, { recursive: true, force: true });
    mkdirSync(place, { recursive: true });
    return place;
}

/** Every file below a directory for which `wanted` says yes, in a stable order. */
export function files(directory, wanted) {
    return readdirSync(directory, { withFileTypes: true })
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .flatMap((entry) => {
            const path = join(directory, entry.name);
            return entry.isDirectory() ? files(path, wanted) : wanted(path) ? [path] : [];
        });
}

/** A path as a person would name it. */
export function shown(path) {
    return relative(REPOSITORY, path);
}

/** Waits until `get` gives something that is neither false nor null; fails after `seconds` with what was last seen. */
export async function until(what, get, seconds = 20) {
    const end = Date.now() + seconds * 1000;
    for (;;) {
        const value = await get();
        if (value !== undefined && value !== null && value !== false) {
            return value;
        }
        if (Date.now() > end) {
            throw new Error(`after ${seconds} s: ${typeof what === "function" ? await what() : what}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
}
