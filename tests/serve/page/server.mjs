// `jobc serve` with a home of its own, on a port that stays the same when it starts again.

import { execFile, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

import { until } from "../../editor/check.mjs";

const run = promisify(execFile);

async function freePort() {
    const server = createServer();
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address();
    await new Promise((resolve) => server.close(resolve));
    return port;
}

export class Server {
    /** Starts it with an empty home and no jobs. */
    static async start({ jobc, dist, place }) {
        const server = new Server();
        Object.assign(server, { jobc, dist, place });
        server.home = process.env.JOBC_PAGE_HOME ?? join(place, "home");
        server.work = join(place, "work");
        mkdirSync(server.home, { recursive: true });
        mkdirSync(server.work, { recursive: true });
        const { XDG_RUNTIME_DIR: _, ...environment } = process.env;
        server.environment = { ...environment, HOME: server.home, XDG_STATE_HOME: "", XDG_DATA_HOME: "", XDG_CACHE_HOME: "", XDG_CONFIG_HOME: "", JOBC_COLOR: "never" };
        if (process.env.JOBC_PAGE_LINK) {
            server.link = process.env.JOBC_PAGE_LINK;
        } else {
            server.port = await freePort();
            await server.begin();
        }
        server.origin = new URL(server.link).origin;
        return server;
    }

    /** Starts the process, and reads the link from its file, for its output is no terminal. */
    async begin(...options) {
        const words = ["serve", "--listen", `127.0.0.1:${this.port}`, "--root", this.work, "--page", this.dist, "--share", "read:1h", ...options];
        this.process = spawn(this.jobc, words, { cwd: this.work, env: this.environment, stdio: ["ignore", "pipe", "pipe"] });
        let output = "";
        for (const stream of [this.process.stdout, this.process.stderr]) {
            stream.setEncoding("utf8").on("data", (text) => (output += text));
        }
        this.output = () => output;
        const file = await until(() => `no link: ${output}`, () => {
            if (this.process.exitCode !== null) {
                throw new Error(`the server has ended: ${output}`);
            }
            return /the link is in `([^`]+)`/.exec(output)?.[1];
        });
        this.link = readFileSync(file, "utf8").trim();
        this.readLink = /http:\S+#token=\S+/.exec(output)?.[0];
    }

    /** Whether steps may kill it. */
    get isOwn() {
        return this.process !== undefined;
    }

    async kill() {
        const gone = new Promise((resolve) => this.process.once("exit", resolve));
        this.process.kill("SIGKILL");
        await gone;
    }

    async stop() {
        if (this.isOwn && this.process.exitCode === null) {
            const gone = new Promise((resolve) => this.process.once("exit", resolve));
            this.process.kill("SIGTERM");
            await gone;
        }
        // What a failed step has left running.
        const jobs = JSON.parse((await this.call("ps", "--format", "json")).stdout || "[]");
        for (const { id } of this.isOwn ? jobs : []) {
            await this.call("kill", id).catch(() => undefined);
        }
    }

    /** Runs jobc as the user of the server does. */
    async call(...words) {
        return await run(this.jobc, words, { cwd: this.work, env: this.environment, maxBuffer: 1 << 28 });
    }

    /** Runs a job file in the background; its id. */
    async run(name, text) {
        const file = join(this.work, name, "job.yaml");
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, text);
        return (await this.call("run", "--detach", file)).stdout.trim().split("\n")[0];
    }

    async inspect(id) {
        return JSON.parse((await this.call("inspect", id, "--format", "json")).stdout);
    }

    async ended(id, seconds = 60) {
        return await until(`${id} does not end`, async () => {
            const job = await this.inspect(id);
            return ["succeeded", "failed", "stopped", "timed-out", "lost"].includes(job.state) && job;
        }, seconds);
    }
}
