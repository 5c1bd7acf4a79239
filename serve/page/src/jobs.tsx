// All jobs: a table, a filter that is the address, and keys.

import { useEffect, useRef, useState } from "preact/hooks";

import { stop, useMayChange } from "./actions";
import { Problem, epoch, get } from "./api";
import { age, duration, fullTime } from "./format";
import { go, jobAddress, setQuery, useRoute } from "./route";
import { STATES, State, hasEnded } from "./state";
import { Table, type Column } from "./table";
import { Text } from "./text";
import type { Job, JobList, Place } from "./types";
import { useDocument, useKeys, useNow, useTitle } from "./use";
import { useValue } from "./value";

/** How many jobs one request has. */
const PAGE = 200;
/** How often the first page is read again, in milliseconds. */
const PERIOD = 2000;

const FIRST = ["jobc run -- echo \"it runs\"", "jobc init sweep --example local-sweep", "jobc run sweep"];

/** The jobs of a filter, page after page; what is seen first is read again while the page is visible. */
function useJobs(filter: string): { rows: Job[]; total: number | undefined; unreachable: JobList["unreachable"]; isLoaded: boolean; problem: Problem | null; more(): void; again(): void } {
    const [state, set] = useState<{ filter: string; rows: Job[]; next: string | null; total: number | undefined; unreachable: JobList["unreachable"]; isLoaded: boolean; problem: Problem | null }>({ filter, rows: [], next: null, total: undefined, unreachable: [], isLoaded: false, problem: null });
    const back = useValue(epoch);
    const isBusy = useRef(false);
    const [turn, setTurn] = useState(0);
    useEffect(() => {
        const controller = new AbortController();
        const load = async (): Promise<void> => {
            try {
                const { jobs, next, total, unreachable = [] } = await get<JobList>(`/jobs?limit=${PAGE}${filter}`, controller.signal);
                set((before) => {
                    if (before.filter !== filter || !before.isLoaded) {
                        return { filter, rows: jobs, next, total, unreachable, isLoaded: true, problem: null };
                    }
                    // Pages after the first stay, without what is now in it.
                    const ids = new Set(jobs.map(({ id }) => id));
                    const isLong = before.rows.length > PAGE && next !== null;
                    const rest = isLong ? before.rows.slice(PAGE).filter(({ id }) => !ids.has(id)) : [];
                    return { ...before, rows: [...jobs, ...rest], next: isLong ? before.next : next, total, unreachable, problem: null };
                });
            } catch (error) {
                if (error instanceof Problem && error.status !== 0 && !controller.signal.aborted) {
                    set((before) => ({ ...before, filter, isLoaded: true, problem: error }));
                }
            }
        };
        void load();
        const timer = setInterval(() => !document.hidden && void load(), PERIOD);
        return () => {
            controller.abort();
            clearInterval(timer);
        };
    }, [filter, back, turn]);
    const more = (): void => {
        if (state.next === null || isBusy.current) {
            return;
        }
        isBusy.current = true;
        get<JobList>(`/jobs?limit=${PAGE}${filter}&after=${encodeURIComponent(state.next)}`)
            .then(({ jobs, next }) => set((before) => {
                const ids = new Set(before.rows.map(({ id }) => id));
                return before.filter === filter ? { ...before, rows: [...before.rows, ...jobs.filter(({ id }) => !ids.has(id))], next } : before;
            }))
            .catch(() => undefined)
            .finally(() => {
                isBusy.current = false;
            });
    };
    // What was shown before stays until the answer to another filter is here.
    return { ...state, more, again: () => setTurn((it) => it + 1) };
}

/** What a job waits for or how it ended, in one sentence. */
export function sentence(job: Job): string {
    return job.end?.explanation ?? job.message ?? job.reason ?? job.description ?? "";
}

function tasksOf({ tasks }: Job): string {
    const all = Object.values(tasks).reduce((sum, it) => sum + it, 0);
    return all === 0 ? "" : `${tasks["succeeded"] ?? 0} of ${all}`;
}

function ran(job: Job, now: number): number | null {
    return job.started === null ? null : (job.ended === null ? now : Date.parse(job.ended)) - Date.parse(job.started);
}

export function Jobs() {
    useTitle("Jobs");
    const { query } = useRoute();
    const [text, setText] = useState(query.get("q") ?? "");
    const [state, place] = [query.get("state") ?? "", query.get("place") ?? ""];
    const q = query.get("q") ?? "";
    const filter = [["q", q], ["state", state], ["place", place]].map(([name, value]) => (value ? `&${name}=${encodeURIComponent(value)}` : "")).join("");
    const { rows, total, unreachable, isLoaded, problem, more, again } = useJobs(filter);
    const places = useDocument<{ places: Place[] }>("/places").data?.places ?? [];
    const [selected, select] = useState<string | null>(null);
    const now = useNow(1000);
    const mayChange = useMayChange();
    const field = useRef<HTMLInputElement>(null);
    const timer = useRef(0);

    // Another way to this page, such as the button Back, has its own filter.
    useEffect(() => {
        if (document.activeElement !== field.current) {
            setText(q);
        }
    }, [q]);
    const type = (value: string): void => {
        setText(value);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => setQuery("q", value.trim()), 200);
    };
    const move = (by: number): void => {
        const at = rows.findIndex(({ id }) => id === selected);
        const row = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
        if (row !== undefined) {
            select(row.id);
            requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-key="${CSS.escape(row.id)}"] a`)?.focus({ preventScroll: true }));
        }
    };
    useKeys((key) => {
        const job = rows.find(({ id }) => id === selected);
        if (key === "/") {
            field.current?.focus();
        } else if (key === "j" || key === "ArrowDown") {
            move(1);
        } else if (key === "k" || key === "ArrowUp") {
            move(-1);
        } else if (key === "Enter" && job && document.activeElement === document.body) {
            go(jobAddress(job.id));
        } else if (key === "s" && job && !hasEnded(job) && mayChange) {
            void stop(job.id).then((done) => done && again());
        } else if (key === "n" && mayChange) {
            go("/new");
        } else {
            return false;
        }
        return true;
    });
    const hasGpus = rows.some(({ gpus }) => gpus !== undefined && gpus > 0);
    const hasPlaces = rows.some(({ target }) => target !== null && target !== "local");
    const columns: Column<Job>[] = [
        {
            key: "job", title: "Job", width: "minmax(7em, 1.1fr)",
            cell: (job) => (
                <>
                    <a href={jobAddress(job.id)} title={job.description ?? ""}>{job.id}</a>
                    {job.sweep && <a class="chip" href={`/sweeps/${encodeURIComponent(job.sweep)}`} title="The sweep that it is a point of">{job.sweep}</a>}
                </>
            ),
        },
        { key: "state", title: "State", width: "7.6em", cell: (job) => <State state={job.state} /> },
        { key: "why", title: "Why", width: "minmax(8em, 2fr)", from: 760, cell: (job) => <span class="cut" title={sentence(job)}><Text of={sentence(job)} /></span> },
        { key: "tasks", title: "Tasks", width: "6.5em", from: 560, isNumber: true, cell: tasksOf },
        ...(hasGpus ? [{ key: "gpus", title: "GPUs", width: "4em", from: 600, isNumber: true, cell: (job: Job) => job.gpus || "" }] : []),
        ...(hasPlaces ? [{ key: "place", title: "Place", width: "7em", from: 600, cell: (job: Job) => job.target ?? "local" }] : []),
        { key: "ran", title: "Ran", width: "6.5em", from: 640, isNumber: true, cell: (job) => { const time = ran(job, now); return time === null ? "" : duration(time); } },
        { key: "age", title: "Age", width: "3.9em", isNumber: true, cell: (job) => job.submitted && <time title={fullTime(job.submitted)}>{age(job.submitted, now)}</time> },
    ];
    const isFiltered = q !== "" || state !== "";
    return (
        <div class="page fill">
            <div class="top">
                <h1 tabIndex={-1}>Jobs</h1>
                <span class="quiet" role="status">{isLoaded ? (total ?? rows.length).toLocaleString("en") : ""}</span>
                <span class="space" />
                <form role="search" class="filters" onSubmit={(event) => event.preventDefault()}>
                    <input ref={field} type="search" aria-label="Filter by name" placeholder="Filter   /" value={text} onInput={({ currentTarget }) => type(currentTarget.value)}
                        onKeyDown={(event) => {
                            if (event.key === "Escape" || event.key === "Enter") {
                                // Not emptied, as Chromium would: the filter stays, and keys are for the rows again.
                                event.preventDefault();
                                event.currentTarget.blur();
                            }
                        }} />
                    <select aria-label="State" value={state} onChange={({ currentTarget }) => setQuery("state", currentTarget.value)}>
                        <option value="">any state</option>
                        <option value="active">not ended</option>
                        {STATES.map((it) => <option key={it} value={it}>{it}</option>)}
                    </select>
                    {places.length > 1 && (
                        <select aria-label="Place" value={place} onChange={({ currentTarget }) => setQuery("place", currentTarget.value)}>
                            <option value="">any place</option>
                            {places.filter(({ kind }) => kind !== "build" && kind !== "openpai").map(({ name }) => <option key={name} value={name}>{name === "local" ? "this host" : name}</option>)}
                        </select>
                    )}
                </form>
                {mayChange && <a class="button primary" href="/new">New job</a>}
            </div>
            {unreachable?.map(({ place: name, message }) => <p key={name} class="banner warning"><strong>{name}</strong> cannot be reached, so its jobs are missing: <Text of={message} /></p>)}
            {problem && <p class="banner problem">{problem.message}</p>}
            {!isLoaded ? <p class="quiet loading">Loading…</p> : rows.length === 0 ? (
                problem ? null : place !== "" && !isFiltered ? (
                    <div class="empty"><p>No job of yours is at {place}. <a href="/jobs">All jobs</a></p></div>
                ) : isFiltered ? (
                    <div class="empty"><p>No job matches. <a href="/jobs">Show all jobs</a></p></div>
                ) : (
                    <div class="empty">
                        <h2>No job has run yet</h2>
                        <p>Begin in a terminal; what runs there is shown here.</p>
                        <pre>{FIRST.join("\n")}</pre>
                        {mayChange && <p>Or <a href="/new?template=local-sweep">begin here, from an example</a>.</p>}
                    </div>
                )
            ) : (
                <Table label="Jobs" class="jobs" columns={columns} rows={rows} keyOf={({ id }) => id} selected={selected} onSelect={select} onEnd={more} {...(total !== undefined && { total })} />
            )}
        </div>
    );
}
