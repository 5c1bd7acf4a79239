// The tasks of a job: state, and a bar for each attempt on the job's time.

import { useState } from "preact/hooks";

import { clock, count, duration } from "../format";
import { State, hasEnded, kindOf } from "../state";
import { Table, sorted, type Column, type Sorting } from "../table";
import type { Attempt, JobDetails, Task } from "../types";
import { useNow } from "../use";

const ROW = 30;
/** How many tasks are shown at once; the others are below. */
const MAX_ROWS = 6;

interface Bar {
    left: number;
    width: number;
    kind: string;
    title: string;
}

export function Timeline({ job }: { job: JobDetails }) {
    const now = useNow(hasEnded(job) ? null : 1000);
    const [sorting, sort] = useState<Sorting | null>(null);
    const [isTall, setTall] = useState(false);
    if (job.tasks.length === 0) {
        return null;
    }
    const begin = Date.parse(job.submitted ?? job.started ?? "") || now;
    const end = Math.max(job.ended === null ? now : Date.parse(job.ended), begin + 1000);
    const place = (time: number): number => ((time - begin) / (end - begin)) * 100;
    const bars = (task: Task): Bar[] =>
        [...(task.earlier ?? []), task].flatMap((attempt: Attempt, index, all): Bar[] => {
            if (!attempt.started) {
                return [];
            }
            const isLast = index === all.length - 1;
            const from = Date.parse(attempt.started);
            const to = attempt.ended ? Date.parse(attempt.ended) : end;
            const kind = isLast ? kindOf(task.state) : "bad";
            const how = attempt.ended ? `, ${ending(attempt) || task.state}` : "";
            return [{ left: place(from), width: Math.max(place(to) - place(from), 0.4), kind, title: `attempt ${attempt.attempt}: ${clock(attempt.started)}, ${duration(to - from)}${how}` }];
        });
    const columns: Column<Task>[] = [
        { key: "task", title: "Task", width: "minmax(7em, 12em)", cell: ({ task }) => <span class="cut mono" title={task}>{task}</span>, sort: ({ task }) => task },
        { key: "state", title: "State", width: "7.5em", cell: ({ state }) => <State state={state} />, sort: ({ state }) => state },
        {
            key: "time", title: `Time, ${duration(end - begin)} in all`, width: "minmax(6em, 1fr)", from: 520,
            cell: (task) => {
                const all = bars(task);
                return <span class="track" role="img" aria-label={all.map(({ title }) => title).join("; ") || "not started"}>{all.map((bar) => <span key={bar.title} class={`bit ${bar.kind}`} title={bar.title} style={{ left: `${bar.left}%`, width: `${bar.width}%` }} />)}</span>;
            },
            sort: ({ started }) => started,
        },
        { key: "attempt", title: "Attempt", width: "6em", isNumber: true, from: 700, cell: ({ attempt }) => attempt || "", sort: ({ attempt }) => attempt },
        { key: "how", title: "End", width: "minmax(6em, 15em)", cell: (task) => <span class="cut" title={ending(task)}>{ending(task)}</span>, sort: ending },
        ...(job.tasks.some(({ gpus }) => gpus?.length) ? [{ key: "gpus", title: "GPUs", width: "5em", from: 600, cell: ({ gpus }: Task) => <span class="cut" title={gpus?.join(", ")}>{gpus?.length || ""}</span> }] : []),
        ...(job.tasks.some(({ node }) => node) ? [{ key: "node", title: "Node", width: "8em", from: 800, cell: ({ node }: Task) => <span class="cut">{node}</span>, sort: ({ node }: Task) => node }] : []),
    ];
    const isLong = job.tasks.length > MAX_ROWS;
    const shown = isTall ? Math.min(job.tasks.length, 20) : Math.min(job.tasks.length, MAX_ROWS);
    return (
        <section class="timeline" aria-label="Tasks">
            <div style={{ height: `${(shown + 1) * ROW + 4}px` }} class="frame">
                <Table label="Tasks" class="tasks" columns={columns} rows={sorted(job.tasks, columns, sorting)} keyOf={({ task }) => task} rowHeight={ROW} sorting={sorting} onSort={sort} />
            </div>
            {isLong && (
                <p class="more">
                    <button type="button" class="plain" aria-expanded={isTall} onClick={() => setTall(!isTall)}>{isTall ? "Fewer" : `All ${count(job.tasks.length, "task")}`}</button>
                    {[...counts(job.tasks)].map(([state, number]) => <span key={state}>{number.toLocaleString("en")} <State state={state} /></span>)}
                </p>
            )}
        </section>
    );
}

function counts(tasks: Task[]): Map<string, number> {
    const found = new Map<string, number>();
    for (const { state } of tasks) {
        found.set(state, (found.get(state) ?? 0) + 1);
    }
    return found;
}

/** How an attempt ended. */
function ending(attempt: Attempt & { oom_kills?: number }): string {
    const how = attempt.reason ?? (attempt.signal ? `signal ${attempt.signal}` : attempt.exit_code === null || attempt.exit_code === undefined ? "" : `exit ${attempt.exit_code}`);
    const kind = attempt.verdict && attempt.verdict.kind !== "success" ? attempt.verdict.kind : "";
    if (kind !== "" && !how.includes(kind)) {
        return how === "" ? kind : `${how}, ${kind}`;
    }
    return attempt.oom_kills && !how.includes("memory") ? `${how}, out of memory`.replace(/^, /, "") : how;
}
