// What is shown without a session.

import { useState } from "preact/hooks";

import { Problem, begin, resume } from "./api";
import { useTitle } from "./use";

export function SignIn() {
    useTitle("Sign in");
    const [token, setToken] = useState("");
    const [problem, setProblem] = useState("");
    const submit = async (event: Event): Promise<void> => {
        event.preventDefault();
        try {
            // The whole link is taken too.
            await begin(token.trim().replace(/^.*#token=/, ""));
            await resume();
        } catch (error) {
            const { status, title } = error as Problem;
            setProblem(status === 401 ? "The token is unknown, or has expired." : title);
        }
    };
    return (
        <div class="page narrow">
            <h1 tabIndex={-1}>Open the link that <code>jobc serve</code> has printed</h1>
            <p>The session has ended, or this browser has none yet. Jobs keep running.</p>
            <form class="stack" onSubmit={(event) => void submit(event)}>
                <label for="token">Or paste the link or its token</label>
                <input id="token" type="password" autocomplete="off" value={token} onInput={({ currentTarget }) => setToken(currentTarget.value)} required aria-describedby="token-problem" />
                <p id="token-problem" role="alert" class="problem">{problem}</p>
                <p><button type="submit" class="primary">Open</button></p>
            </form>
            <p class="quiet">A new link: <code>jobc serve</code> in a terminal on the host.</p>
        </div>
    );
}
