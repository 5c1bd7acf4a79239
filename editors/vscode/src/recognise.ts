// Which files are jobc's, by name and by what stands at their top level. No editor is needed to decide that.

/** What a file is to jobc: its own job, its targets, or a job in one of OpenPAI's formats, which no schema of ours fits. */
export type Kind = "job" | "targets" | "openpai";

/** Keys at the top level that say that a file called `job.yaml` belongs to another program. */
const FOREIGN = new Set(["apiVersion", "kind", "jobs", "stages", "services", "steps", "pipelines"]);

/** Keys that only OpenPAI's jobs have. */
const OPENPAI = ["taskRoles", "protocolVersion"];

const MODELINE = /^\s*#\s*yaml-language-server:\s*\$schema=(\S+)/m;
const DOLLAR_SCHEMA = /"\$schema"\s*:\s*"([^"]*)"/;

/**
 * What the file at `path` is, or undefined where it is none of ours. A modeline decides; then the name, unless the
 * keys say that the file is another program's; then the keys, for a file with any name.
 */
export function recognise(path: string, text: string): Kind | undefined {
    const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
    const json = name.endsWith(".json") || /^\s*\{/.test(text);
    const schema = (json ? DOLLAR_SCHEMA : MODELINE).exec(text.slice(0, 4096))?.[1];
    if (schema !== undefined) {
        return schema.endsWith("job.v1.schema.json") ? "job" : schema.endsWith("targets.v1.schema.json") ? "targets" : undefined;
    }
    if (isForeign(text)) {
        return undefined;
    }
    const keys = topLevelKeys(text);
    if (OPENPAI.some((key) => keys.has(key))) {
        return "openpai";
    }
    if (/^(job|jobc|.+\.job)\.(ya?ml|json)$/.test(name)) {
        return "job";
    }
    if (/^targets\.ya?ml$/.test(name)) {
        return "targets";
    }
    return keys.has("version") && keys.has("roles") ? "job" : undefined;
}

/** Whether the keys of a file, or the list that it is, show that it belongs to another program. */
export function isForeign(text: string): boolean {
    if (/^(?:\s*(?:#.*)?\n|---\s*\n)*(?:- |\[)/.test(text)) {
        return true;
    }
    const keys = topLevelKeys(text);
    const ours = keys.has("roles") || OPENPAI.some((key) => keys.has(key));
    return !ours && [...keys].some((key) => FOREIGN.has(key));
}

/** The keys of a block mapping or of a JSON object, at its top level. A document that is broken further down has them too. */
export function topLevelKeys(text: string): Set<string> {
    return /^\s*(?:\/\/.*\s*|\/\*[^]*?\*\/\s*)*\{/.test(text) ? keysOfJson(text) : keysOfYaml(text);
}

function keysOfYaml(text: string): Set<string> {
    const keys = new Set<string>();
    for (const match of text.matchAll(/^(?:"([^"\n]+)"|'([^'\n]+)'|([A-Za-z_$][^\s:#]*))\s*:(?=\s|$)/gm)) {
        keys.add(match[1] ?? match[2] ?? match[3] ?? "");
    }
    return keys;
}

/** Strings, comments, brackets and colons are all the tokens that matter. */
function keysOfJson(text: string): Set<string> {
    const keys = new Set<string>();
    let depth = 0;
    let last = "";
    for (const [token] of text.matchAll(/"(?:[^"\\\n]|\\.)*"|\/\/.*|\/\*[^]*?\*\/|[{}[\]:]/g)) {
        if (token === "{" || token === "[") {
            depth += 1;
        } else if (token === "}" || token === "]") {
            depth -= 1;
        } else if (token === ":" && depth === 1) {
            keys.add(last.slice(1, -1));
        }
        last = token;
    }
    return keys;
}
