package lull_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// retired are words for which the house has another one (docs/architecture.md, Words).
var retired = map[string]string{
	"abort": "abandon", "aborted": "abandoned",
	"backend": "dependency", "downstream": "dependency", "upstream": "dependency",
	"backup": "hedge", "speculative": "hedge", "racer": "hedged attempt",
	"ban": "eject", "banned": "ejected", "blacklisted": "ejected",
	"canary": "probe", "trial": "probe",
	"cancelled": "canceled", "cancellation": "canceled",
	"credit": "token", "credits": "tokens", "deposit": "earn", "quota": "limit",
	"denied": "refused", "deny": "refuse", "reject": "refuse", "rejected": "refused", "rejection": "refusal",
	"dlq": "dead letter", "undeliverable": "dead letter",
	"expiry": "expires", "ttl": "life",
	"job": "message", "task": "message",
	"nack": "retry", "penalty": "wait", "sleep": "wait",
	"replenish": "earn", "repay": "refund",
	"retriable": "transient", "retryable": "transient",
	"reattempt": "retry", "resubmit": "retry",
	"rng":       "rand",
	"shedder":   "admission",
	"throttler": "throttle",
	"tripped":   "opened", "untripped": "closed",
}

// foreign are names from elsewhere.
var foreign = []string{"RetryableStatusCodes", // of gRPC
	"Upstream", "Upstreams"} // what a proxy calls

// No exported name of the library and no key of its files has a retired word.
func TestNoNameHasARetiredWord(t *testing.T) {
	names := map[string]string{} // where each is
	for _, file := range librarySources(t) {
		exportedNames(t, file, nil, true, names)
	}
	for _, file := range []string{"scenario.go", "kinds.go", "distribution.go"} { // their fields are the keys of scenarios
		exportedNames(t, "lab/sim/"+file, nil, true, names)
	}
	keysOfFiles(t, names)
	if len(names) < 1000 {
		t.Fatalf("only %d names were found", len(names))
	}
	for name, where := range names {
		if word, instead := retiredWord(name); word != "" && !slices.Contains(foreign, name) {
			t.Errorf("%s: %s has the word %q: write %q", where, name, word, instead)
		}
	}
}

// Each kind of name is found in source that has it planted.
func TestRetiredWordsAreFound(t *testing.T) {
	const planted = `package p
type RetriableKind int
type T struct { MaxQuota, ok int; unexportedQuota int }
type I interface { RejectIt() }
const ABCPenalty = 1
func (T) SleepFor(TTL int) { var Trial int; _ = Trial }
func CancelledByUser() {}
`
	names := map[string]string{}
	exportedNames(t, "planted.go", []byte(planted), true, names)
	var found []string
	for name := range names {
		if word, _ := retiredWord(name); word != "" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	if want := []string{"ABCPenalty", "CancelledByUser", "MaxQuota", "RejectIt", "RetriableKind", "SleepFor"}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	for _, key := range []string{"max_quota", "retriable"} {
		if word, _ := retiredWord(key); word == "" {
			t.Errorf("the key %s was not found", key)
		}
	}
}

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// retiredWord returns the first retired word of a name, and the word to use.
func retiredWord(name string) (word, instead string) {
	for word := range strings.SplitSeq(strings.ToLower(capital.ReplaceAllString(name, "${1}${3}_${2}${4}")), "_") {
		if instead := retired[word]; instead != "" {
			return word, instead
		}
	}
	return "", ""
}

// librarySources returns the files of all packages that users can import.
func librarySources(t *testing.T) []string {
	return slices.DeleteFunc(sourceFiles(t, "lab", "cmd", "docs", "internal"), func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

// exportedNames adds the exported names of a file to names: of types, functions, variables and constants, and with members
// also those of fields and methods. src, if not nil, is the file's content.
func exportedNames(t *testing.T, file string, src any, members bool, names map[string]string) {
	t.Helper()
	set := token.NewFileSet()
	f := must.Have(parser.ParseFile(set, file, src, parser.SkipObjectResolution))
	add := func(all ...*ast.Ident) {
		for _, n := range all {
			if n.IsExported() {
				names[n.Name] = fmt.Sprint(set.Position(n.Pos()))
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if members || n.Recv == nil {
				add(n.Name)
			}
			return false
		case *ast.FuncType:
			return false
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			if members {
				add(n.Names...)
			}
		}
		return true
	})
}

// keysOfFiles adds the keys of policy files, and those of the scenarios that lull has.
func keysOfFiles(t *testing.T, names map[string]string) {
	t.Helper()
	for pattern, key := range map[string]string{"config/policy.schema.json": `"(\w+)":`, "lab/scenario/scenarios/*.yaml": `(?m)^[ -]*(\w+):`} {
		files, _ := filepath.Glob(pattern)
		if len(files) == 0 {
			t.Fatalf("there is no %s", pattern)
		}
		for _, file := range files {
			text := must.Have(os.ReadFile(file))
			for _, m := range regexp.MustCompile(key).FindAllStringSubmatch(string(text), -1) {
				names[m[1]] = file
			}
		}
	}
}
