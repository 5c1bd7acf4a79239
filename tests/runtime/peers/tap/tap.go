// Package tap writes results in the Test Anything Protocol. It has what the validation programs call of
// github.com/mndrix/tap-go, which is in no package of Debian.
package tap

import (
	"encoding/json"
	"fmt"
	"strings"
)

// T is a report. The copies that Todo makes count on with it.
type T struct {
	count *int
	todo  bool
}

// New is an empty report.
func New() *T { return &T{count: new(int)} }

// Todo reports results that may fail.
func (t *T) Todo() *T { return &T{count: t.count, todo: true} }

// Header announces the number of results; 0 leaves it to AutoPlan.
func (t *T) Header(count int) {
	fmt.Println("TAP version 13")
	if count > 0 {
		fmt.Printf("1..%d\n", count)
	}
}

// AutoPlan announces as many results as there were.
func (t *T) AutoPlan() { fmt.Printf("1..%d\n", *t.count) }

// Ok reports one result.
func (t *T) Ok(passed bool, description string) {
	*t.count++
	word, mark := "ok", "-"
	if !passed {
		word = "not ok"
	}
	if t.todo {
		mark = "# TODO"
	}
	fmt.Printf("%s %d %s %s\n", word, *t.count, mark, description)
}

// Pass reports a result that is as expected.
func (t *T) Pass(description string) { t.Ok(true, description) }

// Fail reports a result that is not.
func (t *T) Fail(description string) { t.Ok(false, description) }

// Skip reports results that were not tried.
func (t *T) Skip(count int, reason string) {
	for ; count > 0; count-- {
		*t.count++
		fmt.Printf("ok %d # SKIP %s\n", *t.count, reason)
	}
}

// Diagnostic writes a comment.
func (t *T) Diagnostic(text string) {
	fmt.Println("# " + strings.ReplaceAll(text, "\n", "\n# "))
}

// Diagnosticf writes a formatted comment.
func (t *T) Diagnosticf(format string, values ...interface{}) {
	t.Diagnostic(fmt.Sprintf(format, values...))
}

// YAML writes details of the last result, as JSON, which is YAML.
func (t *T) YAML(details interface{}) error {
	text, err := json.MarshalIndent(details, "  ", "  ")
	if err == nil {
		fmt.Printf("  ---\n  %s\n  ...\n", text)
	}
	return err
}
