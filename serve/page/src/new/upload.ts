// Files beside the job: only what the server does not have is sent.

import { Problem, path, post, send } from "../api";

export interface Entry {
    path: string;
    size: number;
    sha256: string;
    mode: number;
}

export interface Upload {
    id: string;
    files: Entry[];
}

export interface Given {
    path: string;
    blob: Blob;
}

const MAX_FILE = 512 * 1024 * 1024;
const MAX_FILES = 10_000;
/** Directories that no job wants and that are large. */
const SKIPPED = new Set([".git", "__pycache__", "node_modules", ".venv", ".mypy_cache", ".ruff_cache", ".DS_Store"]);

/** Adds files to those that there are, and sends what is missing. */
export async function upload(before: Entry[], given: Given[], progress: (text: string) => void): Promise<Upload> {
    if (crypto.subtle === undefined) {
        throw new Problem(0, "files cannot be sent from this page", "a browser computes their digests over HTTPS or from localhost only; use `ssh -L`, or HTTPS");
    }
    if (before.length + given.length > MAX_FILES) {
        throw new Problem(0, `these are more than ${MAX_FILES} files`, "name a directory of the host as `source` instead of sending it");
    }
    const blobs = new Map<string, Blob>();
    const entries = new Map(before.map((entry) => [entry.path, entry]));
    for (const [index, { path: name, blob }] of given.entries()) {
        if (blob.size > MAX_FILE) {
            throw new Problem(0, `${name} is larger than 512 MiB`, "name a directory of the host as `source` instead of sending it");
        }
        progress(`reading ${index + 1} of ${given.length}`);
        const content = await blob.arrayBuffer();
        const digest = await crypto.subtle.digest("SHA-256", content);
        const sha256 = [...new Uint8Array(digest)].map((it) => it.toString(16).padStart(2, "0")).join("");
        const start = new Uint8Array(content.slice(0, 2));
        const isProgram = start[0] === 0x23 && start[1] === 0x21;
        entries.set(name, { path: name, size: blob.size, sha256, mode: isProgram ? 0o755 : 0o644 });
        blobs.set(sha256, blob);
    }
    return await register([...entries.values()], blobs, progress);
}

/** Registers the files at the server; fails if it wants contents that the page has dropped. */
export async function register(files: Entry[], blobs: Map<string, Blob>, progress: (text: string) => void): Promise<Upload> {
    const { id, missing } = await post<{ id: string; missing: string[] }>("/uploads", { files });
    for (const [index, digest] of missing.entries()) {
        const blob = blobs.get(digest);
        if (blob === undefined) {
            throw new Problem(404, "the server has removed the files", "give them again");
        }
        progress(`sending ${index + 1} of ${missing.length}`);
        await send("PUT", path("uploads", "blobs", digest), blob);
    }
    return { id, files };
}

/** Every file of what was dropped, with paths below it; of a single directory, without its name. */
export async function dropped(items: DataTransferItemList): Promise<Given[]> {
    const roots = [...items].flatMap((item) => item.webkitGetAsEntry() ?? []);
    const found: Given[] = [];
    const walk = async (entry: FileSystemEntry, below: string): Promise<void> => {
        if (SKIPPED.has(entry.name)) {
            return;
        }
        const name = below === "" ? entry.name : `${below}/${entry.name}`;
        if (entry.isFile) {
            const blob = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
            found.push({ path: name, blob });
            return;
        }
        const reader = (entry as FileSystemDirectoryEntry).createReader();
        for (;;) {
            const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
            if (some.length === 0) {
                return;
            }
            for (const each of some) {
                await walk(each, name);
            }
        }
    };
    for (const root of roots) {
        await walk(root, "");
    }
    const only = roots.length === 1 && roots[0]?.isDirectory ? `${roots[0].name}/` : "";
    return found.map(({ path: name, blob }) => ({ path: name.slice(only.length), blob }));
}

/** The same of a field for directories, whose paths begin with the directory. */
export function chosen(files: FileList): Given[] {
    return [...files].flatMap((file) => {
        const parts = (file.webkitRelativePath || file.name).split("/");
        if (parts.some((part) => SKIPPED.has(part))) {
            return [];
        }
        return [{ path: file.webkitRelativePath ? parts.slice(1).join("/") : file.name, blob: file }];
    });
}

/** The files and directories as the language server wants them; it reads no contents. */
export function entriesOf(files: Entry[]): Record<string, string | boolean> {
    const found: Record<string, string | boolean> = {};
    for (const { path: name } of files) {
        const parts = name.split("/");
        for (let depth = 1; depth < parts.length; depth += 1) {
            found[`/${parts.slice(0, depth).join("/")}`] = true;
        }
        found[`/${name}`] = "";
    }
    return found;
}
