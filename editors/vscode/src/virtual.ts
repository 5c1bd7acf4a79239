// The server knows `file:` alone. A file of any other scheme has a path below one for its scheme and authority.

import * as vscode from "vscode";

/** Stands for an empty authority, which no path can have. */
const NONE = "-";

export function toProtocol(uri: vscode.Uri): string {
    if (uri.scheme === "untitled") {
        return uri.toString();
    }
    const authority = uri.authority === "" ? NONE : uri.authority;
    return `file:///${uri.scheme}/${encodeURIComponent(authority)}${uri.path.split("/").map(encodeURIComponent).join("/")}`;
}

export function fromProtocol(text: string): vscode.Uri {
    const found = /^file:\/\/\/([^/]+)\/([^/]+)(.*)$/.exec(text);
    if (found === null) {
        return vscode.Uri.parse(text, true);
    }
    const [, scheme = "", authority = "", path = ""] = found;
    return vscode.Uri.from({ scheme, authority: authority === NONE ? "" : decodeURIComponent(authority), path: decodeURIComponent(path) });
}
