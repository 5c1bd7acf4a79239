// A server of static files on the loopback address, with no more than any web server has.

import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml", ".wasm": "application/wasm" };

/** Where the directory is served: not at the root, so that every URL must be relative. */
const BASE = "/some/where/";

export async function serveDirectory(directory) {
    const server = createServer(({ url }, response) => {
        const path = decodeURIComponent(new URL(url, "http://localhost").pathname);
        const name = path === BASE ? "index.html" : path.slice(BASE.length);
        const file = join(directory, normalize(name));
        const exists = path.startsWith(BASE) && file.startsWith(directory) && statSync(file, { throwIfNoEntry: false })?.isFile();
        if (!exists) {
            response.writeHead(404).end();
            return;
        }
        response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
        createReadStream(file).pipe(response);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${server.address().port}`;
    return { origin, address: `${origin}${BASE}`, close: () => (server.close(), server.closeAllConnections()) };
}
