// Which files are jobc's: by the schema that they name, by name, and by what stands at their top level. No editor is
// needed to decide that. The server has the same rule, in editors/lsp/src/recognize.rs; editors/lsp/src/recognize.json tries both.

/** What a file is to jobc: its own job, its targets, or a job in another tool's format, which no schema of ours fits. */
export type Kind = "job" | "targets" | "foreign";

/** The fields of a job, of a role and of a targets file, which build.mjs takes from the schemas. */
declare const FIELDS: { job: string[]; role: string[]; targets: string[] };

/** Keys of other programs' files that are often called `job.yaml`. */
const FOREIGN = ["apiVersion", "kind", "job", "jobs", "stages", "services", "steps", "pipelines", "hosts", "tasks"];

/** Keys that only OpenPAI's jobs have. */
const OPENPAI = ["taskRoles", "protocolVersion"];

/** What the file at `path` is, or undefined where it is none of ours. */
export function recognise(path: string, text: string): Kind | undefined {
    const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
    const byName = /^(job|jobc|.+\.job)\.(ya?ml|json)$/.test(name) ? "job" : /^targets\.ya?ml$/.test(name) ? "targets" : undefined;
    if (isAskedFor(text)) {
        return "foreign";
    }
    const schema = namedSchema(text);
    if (schema !== undefined) {
        return schema.includes("job.v1.schema.json") ? "job" : schema.includes("targets.v1.schema.json") ? "targets" : undefined;
    }
    const keys = topLevelKeys(text);
    if (OPENPAI.some((key) => keys.has(key))) {
        return "foreign";
    }
    if (isForeign(text, byName)) {
        return undefined;
    }
    return byName ?? (/\.(ya?ml|jsonc?)$/.test(name) && keys.has("version") && hasRoles(text) ? "job" : undefined);
}

/** Whether a file of another tool has the comment that asks for findings: `# jobc: check`, in JSON behind `//`. */
function isAskedFor(text: string): boolean {
    const lines = text.slice(0, 4096).split("\n").slice(0, 10);
    return lines.some((line) => /^\s*(?:#|\/\/)\s*jobc: check\s*$/.test(line));
}

/** The schema that a text names in a modeline or in its key `$schema`; `none` means that it has none. */
function namedSchema(text: string): string | undefined {
    const lines = text.slice(0, 4096).split("\n").slice(0, 10).join("\n");
    return /^(?:\s*#.*?|[\s{"']*)\$schema["' ]*[=:]["' ]*([^"'\s,}]+)/m.exec(lines)?.[1];
}

/**
 * Whether a file is a template of another program, a list, or has such keys: more of them are unknown than known, or
 * nearly known.
 */
export function isForeign(text: string, byName: Kind | undefined = "job"): boolean {
    if (isAskedFor(text)) {
        return false;
    }
    if (isList(text) || /^\{[{%]/m.test(text)) {
        return true;
    }
    const [own, known] = byName === "targets" ? ["targets", FIELDS.targets] : ["roles", [...FIELDS.job, ...FIELDS.role]];
    const keys = topLevel(text);
    if (OPENPAI.some((key) => keys.has(key)) || keys.has("uses") || (keys.has(own) && !isList(keys.get(own) ?? ""))) {
        return false;
    }
    const strangers = [...keys.keys()].filter((key) => !known.some((other) => isNear(key, other))).length;
    return FOREIGN.some((key) => keys.has(key)) || strangers * 2 > keys.size;
}

/** Whether `roles` has fields of roles, as far as it is written. */
function hasRoles(text: string): boolean {
    const roles = topLevel(text).get("roles");
    const keys = [...(roles ?? "").matchAll(/(?:^|[\n{,])[\s{-]*["']?([\w-]+)["']?\s*:/g)].map((match) => match[1] ?? "");
    return roles !== undefined && !isList(roles) && (keys.length <= 1 || keys.some((key) => FIELDS.role.some((other) => isNear(key, other))));
}

/** Whether a text begins with an entry of a list. */
function isList(text: string): boolean {
    return /^(?:\s*(?:#.*)?\n|---\s*\n)*\s*(?:-(?:\s|$)|\[)/.test(text);
}

/** Whether a name is another one, its beginning, or that with a third of its letters mistaken. */
function isNear(name: string, known: string): boolean {
    const [a, b] = [name, known].map((word) => word.replaceAll(/[_. -]/g, "").toLowerCase()) as [string, string];
    const limit = a.length <= 2 ? 0 : a.length <= 5 ? 1 : Math.min(4, Math.floor(a.length / 3));
    if (a === b || (a.length > 2 && b.startsWith(a))) {
        return true;
    }
    if (Math.abs(a.length - b.length) > limit) {
        return false;
    }
    const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
    for (let i = 1; i <= a.length; i += 1) {
        const row = [i];
        for (let j = 1; j <= b.length; j += 1) {
            const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
            const of = (up: number, left: number): number => rows[i - up]?.[j - left] ?? Infinity;
            row.push(Math.min(of(1, 0) + 1, (row[j - 1] ?? Infinity) + 1, of(1, 1) + (a[i - 1] === b[j - 1] ? 0 : 1), swapped ? of(2, 2) + 1 : Infinity));
        }
        rows.push(row);
    }
    return (rows[a.length]?.[b.length] ?? Infinity) <= limit;
}

/** The keys of a block mapping or of a JSON object, at its top level. A document that is broken further down has them too. */
export function topLevelKeys(text: string): Set<string> {
    return new Set(topLevel(text).keys());
}

/** The same with what follows each, up to the next one. */
function topLevel(text: string): Map<string, string> {
    const found = /^\s*(?:\/\/.*\s*|\/\*[^]*?\*\/\s*)*\{/.test(text) ? ofJson(text) : ofYaml(text);
    return new Map(found.map(({ key, end }, index) => [key, text.slice(end, found[index + 1]?.start)]));
}

interface Key {
    key: string;
    start: number;
    end: number;
}

function ofYaml(text: string): Key[] {
    return [...text.matchAll(/^(?:"([^"\n]+)"|'([^'\n]+)'|([A-Za-z_$][^\s:#]*))\s*:(?=\s|$)/gm)].map((match) => ({
        key: match[1] ?? match[2] ?? match[3] ?? "",
        start: match.index,
        end: match.index + match[0].length,
    }));
}

/** Strings, comments, brackets and colons are all the tokens that matter. */
function ofJson(text: string): Key[] {
    const keys: Key[] = [];
    let depth = 0;
    let last: RegExpMatchArray | undefined;
    for (const match of text.matchAll(/"(?:[^"\\\n]|\\.)*"|\/\/.*|\/\*[^]*?\*\/|[{}[\]:]/g)) {
        const token = match[0];
        if (token === "{" || token === "[") {
            depth += 1;
        } else if (token === "}" || token === "]") {
            depth -= 1;
        } else if (token === ":" && depth === 1 && last?.[0].startsWith('"')) {
            keys.push({ key: last[0].slice(1, -1), start: last.index ?? 0, end: match.index + 1 });
        }
        last = match;
    }
    return keys;
}
