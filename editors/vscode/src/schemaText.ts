// The text of jobc's schemas, which are in this package, for the servers that complete fields.

import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";

const NAMES = ["job.v1.schema.json", "targets.v1.schema.json"];

/** The text of one of our schemas, by whatever address a file names it, so that no network is needed; undefined for another. */
export async function schemaText(uri: string): Promise<string | undefined> {
    const name = basename(uri);
    return NAMES.includes(name) ? await readFile(join(__dirname, "schemas", name), "utf8") : undefined;
}
