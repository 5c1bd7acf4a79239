// Emacs with the configuration of docs/guides/editors.md, in batch mode: eglot connects, flymake shows findings, completion and
// quick fixes work.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Check, JOBC, scratch } from "./check.mjs";
import { MISTAKE, recipe, surroundings } from "./recipe.mjs";

const check = new Check("emacs");
const jobc = check.program(JOBC);
const emacs = check.program("emacs");
if (!existsSync("/usr/share/emacs/site-lisp/elpa-src") || spawnSync(emacs, ["--batch", "--eval", "(progn (package-initialize) (require 'eglot))"]).status !== 0) {
    check.needs("eglot");
}
const place = scratch("emacs");
const directory = join(place, "work");
mkdirSync(directory);
writeFileSync(join(directory, "job.yaml"), MISTAKE);
writeFileSync(join(directory, "pod.yaml"), "apiVersion: v1\nkind: Pod\n");
writeFileSync(join(place, "init.el"), recipe("emacs.mjs"));

/** The actions of a user; batch mode has no command loop, so hooks are called explicitly, and answers are awaited. */
const SCRIPT = `
(package-initialize)
(load "${join(place, "init.el")}")
(require 'flymake)
(setq eglot-sync-connect 30 eglot-confirm-server-initiated-edits nil flymake-no-changes-timeout 0.1)
(defun wait-for (test)
  (let ((end (+ (float-time) 20)))
    (while (and (not (funcall test)) (< (float-time) end)) (accept-process-output nil 0.1))))
(find-file "job.yaml")
(let ((mode major-mode))
  (apply #'eglot (eglot--guess-contact))
  (flymake-mode 1)
  (flymake-start)
  (wait-for (lambda () (flymake-diagnostics)))
  (let* ((findings (mapcar (lambda (d) (cons (format "%d" (line-number-at-pos (flymake-diagnostic-beg d))) (flymake-diagnostic-text d)))
                           (flymake-diagnostics)))
         (offered (progn (goto-char (point-min)) (forward-line 6) (search-forward "[")
                         (let* ((capf (eglot-completion-at-point)))
                           (all-completions "" (nth 2 capf)))))
         (actions (progn (goto-char (point-min)) (forward-line 5) (search-forward "int")
                         (eglot-code-actions (line-beginning-position) (line-end-position)))))
    (let ((fix (seq-find (lambda (a) (equal (plist-get a :title) "write \`instances\`")) actions)))
      (when fix (eglot--apply-workspace-edit (plist-get fix :edit))))
    (let ((text (buffer-string)))
      (find-file "pod.yaml")
      (with-temp-file "out.json"
        (insert (json-encode (list :mode (symbol-name mode) :findings findings :offered (vconcat (mapcar #'substring-no-properties offered))
                                   :text (substring-no-properties text)
                                   :other (symbol-name major-mode))))))))
(set-buffer-modified-p nil)
(kill-emacs 0)
`;
writeFileSync(join(place, "script.el"), SCRIPT);

const words = ["--batch", "--no-init-file", "--load", join(place, "script.el")];
const { status, stdout, stderr } = spawnSync(emacs, words, { cwd: directory, env: surroundings(place, jobc), encoding: "utf8", timeout: 120_000 });
if (check.equal(status, 0, `Emacs failed: ${stdout}${stderr}`)) {
    const out = JSON.parse(readFileSync(join(directory, "out.json"), "utf8"));
    check.equal(out.mode, "jobc-mode", "the mode of job.yaml");
    check.expect(/unknown key `intances`/.test(out.findings["6"] ?? ""), `findings: ${JSON.stringify(out.findings)}`);
    check.expect(out.offered.some((label) => label.trim() === "prepare"), `offered in \`needs\`: ${out.offered}`);
    check.equal(out.text, MISTAKE.replace("intances", "instances"), "the quick fix");
    check.expect(out.other !== "jobc-mode", "a Kubernetes manifest is opened as a job");
}
check.end();
