// Logs: followed as they are written, searched, in their colors. Only the lines that are seen are drawn.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { plain, runs } from "../ansi";
import { path } from "../api";
import { bytes, clock, count } from "../format";
import { follow, parsed, type StreamEvent } from "../stream";
import type { JobDetails, LogLine } from "../types";
import { useKeys } from "../use";
import { LogBuffer, search, type Line } from "./log_buffer";
import { TaskChoice } from "./task_choice";

const ROW = 20;
const OVERSCAN = 20;
/** How many lines from before are asked for. */
const TAIL = 5000;
/** How often new lines are drawn, in milliseconds. */
const FRAME = 100;

/** A line; or a note where the server has left lines out, since this page was slower than the task. */
function toLines(event: StreamEvent): LogLine[] {
    if (event.kind === "gap") {
        const lines = parsed<{ lines: number }>(event)?.lines ?? 0;
        return [{ time: new Date().toISOString(), task: "", attempt: 0, stream: "jobc", text: `${count(lines, "line")} left out: they came faster than the page reads`, ends: true }];
    }
    const line = event.kind === "line" ? parsed<LogLine>(event) : undefined;
    return line === undefined ? [] : [line];
}

/** The lines of a task, or of all, as they come. */
function useLog(id: string, task: string): { buffer: LogBuffer; version: number; isOver: boolean; status: number } {
    const [state, set] = useState({ buffer: new LogBuffer(), version: 0, isOver: false, status: 0 });
    useEffect(() => {
        const buffer = new LogBuffer();
        set({ buffer, version: 0, isOver: false, status: 0 });
        let timer = 0;
        const draw = (): void => {
            timer ||= setTimeout(() => {
                timer = 0;
                set((before) => ({ ...before, version: before.version + 1 }));
            }, FRAME);
        };
        const query = new URLSearchParams({ follow: "1", tail: String(TAIL), ...(task !== "" && { task }) });
        const stop = follow(`${path("jobs", id, "logs")}?${query}`, {
            events(events) {
                buffer.add(events.flatMap(toLines));
                draw();
            },
            end: () => set((before) => ({ ...before, version: before.version + 1, isOver: true })),
            fail: (status) => set((before) => ({ ...before, isOver: true, status })),
        });
        return () => {
            stop();
            clearTimeout(timer);
        };
    }, [id, task]);
    return state;
}

export function Logs({ job }: { job: JobDetails }) {
    const [task, setTask] = useState("");
    const { buffer, version, isOver, status } = useLog(job.id, task);
    const [wanted, setWanted] = useState("");
    const [isFiltered, setFiltered] = useState(false);
    const [isFollowing, setFollowing] = useState(true);
    const [hasTimes, setTimes] = useState(false);
    const [current, setCurrent] = useState(0);
    const view = useRef<HTMLDivElement>(null);
    const field = useRef<HTMLInputElement>(null);
    const [seen, setSeen] = useState({ top: 0, height: 600 });
    const found = useMemo(() => (wanted === "" ? [] : search(buffer.lines, wanted)), [wanted, buffer, version]);
    const isOnly = isFiltered && wanted !== "";
    const number = isOnly ? found.length : buffer.lines.length;
    const lineAt = (index: number): Line | undefined => buffer.lines[isOnly ? (found[index] ?? 0) : index];

    useLayoutEffect(() => {
        const element = view.current;
        if (element === null) {
            return undefined;
        }
        const observer = new ResizeObserver(() => setSeen({ top: element.scrollTop, height: element.clientHeight }));
        observer.observe(element);
        return () => observer.disconnect();
    }, []);
    // Following keeps the end in view.
    useLayoutEffect(() => {
        if (isFollowing && view.current !== null) {
            view.current.scrollTop = number * ROW;
        }
    }, [version, isFollowing, number, seen.height]);
    const onScroll = (): void => {
        const element = view.current;
        if (element === null) {
            return;
        }
        const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - ROW;
        if (element.scrollTop < seen.top && !isAtEnd) {
            setFollowing(false);
        } else if (isAtEnd && number * ROW > element.clientHeight) {
            setFollowing(true);
        }
        setSeen({ top: element.scrollTop, height: element.clientHeight });
    };
    const jump = (by: number): void => {
        if (found.length === 0) {
            return;
        }
        const next = (current + by + found.length) % found.length;
        setCurrent(next);
        setFollowing(false);
        const row = isOnly ? next : (found[next] ?? 0);
        view.current?.scrollTo({ top: Math.max(0, row * ROW - seen.height / 2) });
    };
    const look = (value: string): void => {
        setWanted(value);
        setCurrent(-1);
    };
    useKeys((key) => {
        if (key === "/") {
            field.current?.focus();
        } else if (key === "f") {
            setFollowing(!isFollowing);
        } else if (key === "n" && wanted !== "") {
            jump(1);
        } else if (key === "N" && wanted !== "") {
            jump(-1);
        } else {
            return false;
        }
        return true;
    });
    const first = Math.max(0, Math.floor(seen.top / ROW) - OVERSCAN);
    const last = Math.min(number, Math.ceil((seen.top + seen.height) / ROW) + OVERSCAN);
    const tasks = useMemo(() => job.tasks.map((it) => it.task), [job.tasks]);
    const places = useMemo(() => new Map(tasks.map((it, index) => [it, index])), [tasks]);
    const width = useMemo(() => Math.min(16, tasks.reduce((widest, it) => Math.max(widest, it.length), 4)), [tasks]);
    const marked = !isOnly && current >= 0 ? found[current] : undefined;
    return (
        <div class="logs">
            <div class="tools">
                <TaskChoice tasks={tasks} value={task} onChange={setTask} all="all tasks" />
                <form role="search" class="search" onSubmit={(event) => { event.preventDefault(); jump(1); }}>
                    <input ref={field} type="search" aria-label="Search the log" placeholder="Search   /" value={wanted} onInput={({ currentTarget }) => look(currentTarget.value)}
                        onKeyDown={(event) => { if (event.key === "Escape") { look(""); event.currentTarget.blur(); } else if (event.key === "Enter" && event.shiftKey) { event.preventDefault(); jump(-1); } }} />
                    <span class="quiet count" role="status">{wanted === "" ? "" : found.length === 0 ? "none" : `${current >= 0 ? `${current + 1} of ` : ""}${found.length.toLocaleString("en")}`}</span>
                </form>
                <label><input type="checkbox" checked={isFiltered} onChange={({ currentTarget }) => setFiltered(currentTarget.checked)} /> only matches</label>
                <label><input type="checkbox" checked={hasTimes} onChange={({ currentTarget }) => setTimes(currentTarget.checked)} /> times</label>
                <span class="space" />
                <button type="button" aria-pressed={isFollowing} class="toggle" onClick={() => setFollowing(!isFollowing)}>{isOver ? "End" : "Follow"}</button>
            </div>
            {buffer.dropped > 0 && <p class="quiet note-line">{count(buffer.dropped, "older line")} left out; <code>jobc logs {job.id}</code> has all.</p>}
            <div class="lines" ref={view} onScroll={onScroll} role="log" aria-live="off" aria-label={`log of ${task === "" ? job.id : task}`} tabIndex={0}>
                {number === 0 ? (
                    <p class="quiet nothing">{status !== 0 ? `The log cannot be read: status ${status}.` : isOnly ? "No line matches." : isOver ? "Nothing was written." : "Nothing is written yet."}</p>
                ) : (
                    <div class="sizer" style={{ height: `${number * ROW}px` }}>
                        <div class="drawn" style={{ top: `${first * ROW}px` }}>
                            {Array.from({ length: Math.max(0, last - first) }, (_, index) => {
                                const line = lineAt(first + index);
                                return line && <Row key={line.number} line={line} width={width} hasTask={task === "" && tasks.length > 1} index={places.get(line.task) ?? 0} hasTime={hasTimes} wanted={wanted} isMarked={marked !== undefined && buffer.lines[marked] === line} />;
                            })}
                        </div>
                    </div>
                )}
            </div>
        </div>
    );
}

interface RowProps {
    line: Line;
    width: number;
    hasTask: boolean;
    index: number;
    hasTime: boolean;
    wanted: string;
    isMarked: boolean;
}

function Row({ line, width, hasTask, index, hasTime, wanted, isMarked }: RowProps) {
    return (
        <div class={`line ${line.stream}${isMarked ? " marked" : ""}`}>
            {hasTime && <span class="time">{clock(line.time)} </span>}
            {hasTask && <span class={`task t${index % 6}`} title={line.task}>{line.task.padEnd(width).slice(0, width)} </span>}
            <span class="text">{wanted === "" ? runs(line.text).map((run, at) => (run.class === "" ? run.text : <span key={at} class={run.class}>{run.text}</span>)) : <Marked text={plain(line.text)} wanted={wanted} />}</span>
            {line.cut > 0 && <span class="more"> … {bytes(line.cut)} more of this line</span>}
        </div>
    );
}

/** The text with what is searched for marked. */
function Marked({ text, wanted }: { text: string; wanted: string }) {
    const parts = [];
    const lower = text.toLowerCase();
    const needle = wanted.toLowerCase();
    let from = 0;
    for (let at = lower.indexOf(needle); at >= 0 && parts.length < 200; at = lower.indexOf(needle, from)) {
        parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + needle.length)}</mark>);
        from = at + needle.length;
    }
    return <>{parts}{text.slice(from)}</>;
}
