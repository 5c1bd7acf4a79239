// A command in a running task, in a terminal.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { useEffect, useRef, useState } from "preact/hooks";

import { path, socketAddress } from "../api";
import { color } from "../color";
import type { JobDetails } from "../types";
import { TaskChoice } from "./task_choice";

export function Exec({ job }: { job: JobDetails }) {
    const running = job.tasks.filter(({ state }) => state === "running" || state === "ready").map(({ task }) => task);
    const [task, setTask] = useState("");
    const [command, setCommand] = useState("");
    const [session, start] = useState<{ task: string; command: string; number: number } | null>(null);
    const chosen = running.includes(task) ? task : (running[0] ?? "");
    if (running.length === 0 && session === null) {
        return <p class="quiet nothing">No task runs now. A terminal opens in a task that runs.</p>;
    }
    return (
        <div class="exec">
            <form class="tools" onSubmit={(event) => { event.preventDefault(); start({ task: chosen, command, number: (session?.number ?? 0) + 1 }); }}>
                <TaskChoice tasks={running} value={chosen} onChange={setTask} />
                <input aria-label="Command" value={command} onInput={({ currentTarget }) => setCommand(currentTarget.value)} class="mono" placeholder="a shell" />
                <button type="submit" class="primary" disabled={chosen === ""}>{session === null ? "Open" : "Open again"}</button>
                <span class="quiet">Ctrl and M lets Tab leave the terminal.</span>
            </form>
            {session && <Screen key={session.number} id={job.id} task={session.task} command={session.command} />}
        </div>
    );
}

function colors(): Record<string, string> {
    return { background: color("--log-ground"), foreground: color("--log-text"), cursor: color("--accent"), selectionBackground: "#5b8dd666" };
}

function Screen({ id, task, command }: { id: string; task: string; command: string }) {
    const place = useRef<HTMLDivElement>(null);
    const [status, setStatus] = useState("connecting");
    useEffect(() => {
        const element = place.current;
        if (element === null) {
            return undefined;
        }
        const terminal = new Terminal({ fontSize: 13, fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace', theme: colors(), screenReaderMode: true, minimumContrastRatio: 4.5, cursorBlink: false });
        const fit = new FitAddon();
        terminal.loadAddon(fit);
        terminal.open(element);
        fit.fit();
        const socket = new WebSocket(socketAddress(`${path("jobs", id, "exec")}?${new URLSearchParams({ task, ...(command !== "" && { command }) })}`));
        socket.binaryType = "arraybuffer";
        const encoder = new TextEncoder();
        const resize = (): void => {
            fit.fit();
            if (socket.readyState === WebSocket.OPEN) {
                socket.send(JSON.stringify({ resize: [terminal.cols, terminal.rows] }));
            }
        };
        const observer = new ResizeObserver(resize);
        observer.observe(element);
        let isOver = false;
        let leaves = false;
        socket.onopen = () => {
            setStatus("");
            resize();
            terminal.focus();
        };
        socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
            if (typeof data !== "string") {
                terminal.write(new Uint8Array(data));
                return;
            }
            const message = JSON.parse(data) as { exit?: number; error?: string };
            isOver = true;
            setStatus(message.error ?? `ended with exit status ${message.exit}`);
        };
        socket.onclose = () => {
            terminal.options.disableStdin = true;
            if (!isOver) {
                setStatus("the connection has closed");
            }
        };
        terminal.onData((text) => socket.readyState === WebSocket.OPEN && socket.send(encoder.encode(text)));
        // Tab is the shell's, until the user says otherwise.
        terminal.attachCustomKeyEventHandler((event) => {
            if (event.type === "keydown" && event.ctrlKey && event.key === "m") {
                leaves = !leaves;
                setStatus(leaves ? "Tab leaves the terminal" : "");
                return false;
            }
            return !(leaves && event.key === "Tab");
        });
        const query = matchMedia("(prefers-color-scheme: dark)");
        const recolor = (): void => {
            terminal.options.theme = colors();
        };
        query.addEventListener("change", recolor);
        return () => {
            query.removeEventListener("change", recolor);
            observer.disconnect();
            socket.close();
            terminal.dispose();
        };
    }, []);
    return (
        <>
            <p class="quiet status" role="status">{status}</p>
            <div class="screen"><div class="screen-inside" ref={place} /></div>
        </>
    );
}
