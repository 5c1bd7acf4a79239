// The configurations in docs/guides/editors.md, which the tests load unchanged.

import { readFileSync, symlinkSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";

import { REPOSITORY } from "./check.mjs";

/** The code block that follows the comment naming this test. */
export function recipe(test) {
    const page = readFileSync(join(REPOSITORY, "docs", "guides", "editors.md"), "utf8");
    const block = page.split(`<!-- tried: tests/editor/${test} -->`)[1];
    const code = /^\n```\w+\n([^]*?)\n```\n/.exec(block ?? "")?.[1];
    if (code === undefined) {
        throw new Error(`docs/guides/editors.md has no block for ${test}`);
    }
    return code;
}

/** An environment with the program under test as `jobc` on PATH, and without the user's configuration. */
export function surroundings(place, jobc) {
    const bin = join(place, "bin");
    mkdirSync(bin, { recursive: true });
    symlinkSync(jobc, join(bin, "jobc"));
    const home = join(place, "home");
    mkdirSync(home, { recursive: true });
    const { JOBC, ...rest } = process.env;
    return { ...rest, PATH: `${bin}${delimiter}${rest.PATH}`, HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home, XDG_STATE_HOME: home, XDG_CACHE_HOME: home };
}

/** A job with an error in its sixth line, and a list for a role's name in its seventh. */
export const MISTAKE = `version: 1
name: demo
image: python:3.12-slim
roles:
  train:
    intances: 2
    needs: []
    run: python train.py
  prepare:
    run: python prepare.py
`;
