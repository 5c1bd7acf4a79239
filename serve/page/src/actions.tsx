// What changes a job: stop, kill, pause, resume, remove.

import { Problem, path, post, send, session } from "./api";
import { confirm, say } from "./dialogs";
import { count } from "./format";
import { useValue } from "./value";

/** Whether the session may change something. */
export function useMayChange(): boolean {
    return useValue(session)?.access !== "read";
}

async function act(verb: string, id: string, done: string): Promise<boolean> {
    try {
        await (verb === "rm" ? send("DELETE", path("jobs", id)) : send("POST", path("jobs", id, verb), {}));
        say(`${id}: ${done}`);
        return true;
    } catch (error) {
        say(`${id}: ${(error as Problem).message}`, true);
        return false;
    }
}

export async function stop(id: string, what = "Its tasks get their stop signal, and the grace period of the job to end."): Promise<boolean> {
    return (await confirm(`Stop ${id}?`, <p>{what}</p>, "Stop")) && (await act("stop", id, "stops"));
}

export async function kill(id: string): Promise<boolean> {
    return (await confirm(`Kill ${id}?`, <p>Its tasks end at once and write no last checkpoint. Stop gives them time.</p>, "Kill")) && (await act("kill", id, "killed"));
}

export async function remove(id: string): Promise<boolean> {
    const text = <p>Its record goes: logs, events, samples and plan. Its outputs stay where they are.</p>;
    return (await confirm(`Remove ${id}?`, text, "Remove")) && (await act("rm", id, "removed"));
}

/** Runs jobs of a sweep again as they are, one after the other; those that were not started. */
export async function rerun(jobs: string[]): Promise<string[]> {
    const left: string[] = [];
    for (const job of jobs) {
        try {
            await post(path("jobs", job, "rerun"), { confirm: true });
        } catch (error) {
            left.push(job);
            say(`${job}: ${(error as Problem).message}`, true);
        }
    }
    say(`${count(jobs.length - left.length, "job")} started again`);
    return left;
}

export const pause = (id: string): Promise<boolean> => act("pause", id, "paused");
export const unpause = (id: string): Promise<boolean> => act("resume", id, "resumed");
