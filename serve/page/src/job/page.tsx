// The page of a job: what it is doing and why, its tasks in time, and everything it wrote.

import { useEffect, useState } from "preact/hooks";

import { kill, pause, remove, stop, unpause, useMayChange } from "../actions";
import { path } from "../api";
import { follow } from "../stream";
import { bytes, count, cpus, duration, fullTime, metric } from "../format";
import { Later } from "../later";
import { go, jobAddress, setQuery, useRoute } from "../route";
import { State, hasEnded } from "../state";
import { Tabs } from "../tabs";
import { Text } from "../text";
import type { JobDetails, Judgment, Reason } from "../types";
import { useDocument, useKeys, useNow, useTitle } from "../use";
import { lineOf } from "./cause";
import { Events } from "./events";
import { Files } from "./files";
import { Logs } from "./logs";
import { PlanView } from "./plan";
import { ReportView } from "./report";
import { Timeline } from "./timeline";

const plots = () => import("./plots").then(({ Plots }) => Plots);
const terminal = () => import("./terminal").then(({ Exec }) => Exec);

/** How often a job is read again that has not ended, in milliseconds: an event makes it earlier. */
const PERIOD = 5000;

/** The job, read again when it has an event. */
function useJob(id: string) {
    const [isComplete, setComplete] = useState(false);
    const job = useDocument<JobDetails>(path("jobs", id), isComplete ? null : PERIOD);
    const { data, again } = job;
    useEffect(() => {
        if (data !== undefined) {
            setComplete(hasEnded(data));
        }
    }, [data?.state]);
    const isRunning = data !== undefined && !hasEnded(data);
    // The document of thousands of tasks has megabytes.
    const many = (data?.tasks.length ?? 0) > 200;
    useEffect(() => {
        if (!isRunning) {
            return undefined;
        }
        let timer = 0;
        const soon = (): void => {
            timer ||= setTimeout(() => {
                timer = 0;
                again();
            }, many ? 3000 : 250);
        };
        const stopFollowing = follow(`${path("jobs", id, "events")}?follow=1`, { events: soon, end: soon });
        return () => {
            clearTimeout(timer);
            stopFollowing();
        };
    }, [id, isRunning, many]);
    return job;
}

const TABS = [["logs", "Logs"], ["plots", "Plots"], ["events", "Events"], ["files", "Files"], ["plan", "Plan"], ["report", "Report"], ["exec", "Terminal"]] as const;

export function JobPage({ id }: { id: string }) {
    useTitle(id);
    const { query } = useRoute();
    const { data: job, problem, again } = useJob(id);
    const mayChange = useMayChange();
    useKeys((key) => {
        if (key === "s" && job && !hasEnded(job) && mayChange) {
            void stop(id).then((done) => done && again());
        } else if (key === "g") {
            go("/jobs");
        } else if (key === "n" && mayChange) {
            go("/new");
        } else {
            return false;
        }
        return true;
    });
    if (problem && !job) {
        return (
            <div class="page">
                <h1 tabIndex={-1}>{id}</h1>
                <p class="banner problem">{problem.message}</p>
                <p>It may have been removed. <a href="/jobs">All jobs</a></p>
            </div>
        );
    }
    if (!job) {
        return <p class="quiet loading">Loading…</p>;
    }
    const tabs = TABS.filter(([key]) => key !== "exec" || (mayChange && !hasEnded(job))).map(([key, label]) => ({ key, label }));
    const wanted = query.get("tab") ?? "logs";
    const tab = tabs.some(({ key }) => key === wanted) ? wanted : "logs";
    return (
        <div class="page fill job">
            <Head job={job} again={again} />
            <Waits job={job} />
            <Timeline job={job} />
            <Tabs label={`about ${id}`} tabs={tabs} selected={tab} onSelect={(key) => setQuery("tab", key === "logs" ? "" : key)}>
                {tab === "logs" && <Logs job={job} />}
                {tab === "plots" && <Later load={plots} props={{ job }} />}
                {tab === "events" && <Events job={job} />}
                {tab === "files" && <Files job={job} />}
                {tab === "plan" && <PlanView job={job} />}
                {tab === "report" && <ReportView id={id} />}
                {tab === "exec" && <Later load={terminal} props={{ job }} />}
            </Tabs>
        </div>
    );
}

function Head({ job, again }: { job: JobDetails; again(): void }) {
    const now = useNow(hasEnded(job) ? null : 1000);
    const mayChange = useMayChange();
    const then = (done: boolean): void => {
        if (done) {
            again();
        }
    };
    const ran = job.started === null ? null : (job.ended === null ? now : Date.parse(job.ended)) - Date.parse(job.started);
    const totals = job.plan?.totals;
    const facts = [
        job.target && job.target !== "local" ? `on ${job.target}` : "",
        totals ? [count(totals.instances, "task"), totals.cpu_millis ? cpus(totals.cpu_millis) : "", totals.memory_bytes ? bytes(totals.memory_bytes) : "", totals.gpus ? count(totals.gpus, "GPU") : ""].filter((it) => it !== "").join(", ") : "",
        job.attempt > 1 ? `attempt ${job.attempt}` : "",
        ran === null ? "" : `${hasEnded(job) ? "ran" : "runs for"} ${duration(ran)}`,
    ].filter((it) => it !== "");
    return (
        <section class="job-head" aria-label="Job">
            <div class="top">
                <h1 tabIndex={-1}>{job.id}</h1>
                <State state={job.state} />
                <span class="space" />
                {mayChange && (
                    <div class="buttons">
                        {!hasEnded(job) && job.state === "running" && <button type="button" onClick={() => void pause(job.id).then(then)}>Pause</button>}
                        {job.state === "paused" && <button type="button" onClick={() => void unpause(job.id).then(then)}>Resume</button>}
                        {!hasEnded(job) && job.state !== "stopping" && <button type="button" class="danger" onClick={() => void stop(job.id).then(then)}>Stop</button>}
                        {!hasEnded(job) && job.state === "stopping" && <button type="button" class="danger" onClick={() => void kill(job.id).then(then)}>Kill</button>}
                        {hasEnded(job) && <button type="button" onClick={() => void remove(job.id).then((done) => done && go("/jobs"))}>Remove</button>}
                        {!job.id.includes("/") && <a class="button primary" href={`${jobAddress(job.id)}/again`}>Edit and run again</a>}
                    </div>
                )}
            </div>
            {job.end && <p class={job.state === "succeeded" ? "verdict" : "verdict bad"}><Text of={job.end.explanation} /></p>}
            {job.end?.verdict && <Verdict verdict={job.end.verdict} />}
            {job.description && <p class="quiet">{job.description}</p>}
            <p class="facts">
                {facts.map((fact) => <span key={fact}>{fact}</span>)}
                {job.submitted && <span>submitted <time dateTime={job.submitted}>{fullTime(job.submitted)}</time></span>}
                {job.sweep && <span>point of <a href={`/sweeps/${encodeURIComponent(job.sweep)}`}>{job.sweep}</a></span>}
                {job.metrics?.map(({ name, value }) => <span key={name}><strong>{name}</strong> {metric(value)}</span>)}
            </p>
            {job.notes.map((note) => <p key={note} class="banner note"><Text of={note} /></p>)}
        </section>
    );
}

/** What kind of end it was, what says so, and what to do next. */
function Verdict({ verdict: { kind, evidence = [], next } }: { verdict: Judgment }) {
    return (
        <div class="verdict-more">
            {kind !== "success" && <span class="badge">{kind}</span>}
            {next && <p><strong>Next:</strong> <Text of={next} /></p>}
            {evidence.length > 0 && kind !== "success" && <ul class="quiet">{evidence.map((line) => <li key={line}>{line}</li>)}</ul>}
        </div>
    );
}

const WAITS = new Set(["queued", "pending", "suspended", "preparing", "waiting"]);

/** Why the job waits, with the line of the job file that asks for what is missing. */
function Waits({ job }: { job: JobDetails }) {
    const isWaiting = WAITS.has(job.state) || job.tasks.some(({ state }) => state === "waiting" || state === "pending" || state === "retrying");
    const show = !hasEnded(job) && isWaiting;
    const { data } = useDocument<{ reasons: (Reason | string)[]; estimate?: string | null }>(show ? path("jobs", job.id, "reasons") : null, 3000);
    const { data: source } = useDocument<{ text: string }>(show && !job.id.includes("/") ? path("jobs", job.id, "source") : null);
    if (!show) {
        return null;
    }
    // `jobc why` begins with the state, which is above already.
    const reasons = (data?.reasons ?? job.reasons).map((it): Reason => (typeof it === "string" ? { text: it } : it)).filter(({ text }) => text !== job.state);
    if (reasons.length === 0) {
        return null;
    }
    const lines = source?.text.split("\n");
    return (
        <section class="banner warning" aria-label="Why it waits">
            <ul>
                {reasons.slice(0, 6).map(({ text }) => {
                    const line = lines ? lineOf(lines, text) : null;
                    const written = line === null ? undefined : lines?.[line]?.trim();
                    return <li key={text}><Text of={text} />{written && <> <code class="source-line">line {(line ?? 0) + 1}: {written}</code></>}</li>;
                })}
            </ul>
            {data?.estimate && <p>Expected: {data.estimate}</p>}
            {reasons.length > 6 && <p class="quiet">and {reasons.length - 6} more</p>}
        </section>
    );
}
