package lull_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/preset"
	"github.com/lullgo/lull/queue"
)

// docs/errors.md has a section for each reason, under its label, and the section names its error.
func TestErrorsPageHasEveryReason(t *testing.T) {
	page := must.Have(os.ReadFile("docs/errors.md"))
	sections := map[string]string{} // by label
	for section := range strings.SplitSeq(string(page), "\n### ") {
		if label, text, ok := strings.Cut(section, "\n"); ok && strings.HasPrefix(label, "`") {
			sections[strings.Trim(label, "`")] = text
		}
	}
	source := must.Have(os.ReadFile("error.go"))
	names := map[string]string{} // of errors, by the name of the constant in engine
	for _, m := range regexp.MustCompile(`(Err\w+) +error = reasonError\(engine\.(\w+)\)`).FindAllStringSubmatch(string(source), -1) {
		names[m[2]] = m[1]
	}
	if len(names) < 10 {
		t.Fatalf("only %d errors found in error.go", len(names))
	}
	for i := range engine.Reasons {
		label := engine.Reason(i).String()
		text, ok := sections[label]
		if !ok {
			t.Errorf("docs/errors.md has no section ### `%s`", label)
			continue
		}
		delete(sections, label)
		var constant strings.Builder // "budget_exhausted" is BudgetExhausted
		for word := range strings.SplitSeq(label, "_") {
			constant.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		if name := names[constant.String()]; name != "" && !strings.Contains(text, "`lull."+name+"`") {
			t.Errorf("the section of %s does not name lull.%s", label, name)
		}
		delete(names, constant.String())
	}
	for label := range sections {
		t.Errorf("docs/errors.md has a section for %s, which is no reason", label)
	}
	for constant, name := range names {
		t.Errorf("%s belongs to no reason with the label of %s", name, constant)
	}
}

// The comment of Policy has each field, with its type, and the number that zero means.
func TestTheCommentOfPolicyHasItsFields(t *testing.T) {
	source := must.Have(os.ReadFile("lull.go"))
	_, comment, _ := strings.Cut(string(source), "// A Policy describes")
	comment, _, _ = strings.Cut(comment, "\ntype Policy")
	var rows [][]string
	for line := range strings.Lines(comment) {
		if row, is := strings.CutPrefix(line, "//\t"); is {
			rows = append(rows, strings.SplitN(strings.Join(strings.Fields(row), " "), " ", 3))
		}
	}
	zero := reflect.ValueOf(lull.Policy{}.WithDefaults())
	for i, f := range reflect.VisibleFields(zero.Type()) {
		if i >= len(rows) || rows[i][0] != f.Name || rows[i][1] != f.Type.String() {
			t.Fatalf("row %d is not %s %v: %q", i, f.Name, f.Type, rows)
		}
		if v := zero.Field(i); v.CanInt() && !strings.Contains(rows[i][2], fmt.Sprint("; ", v.Interface())) {
			t.Errorf("%s: want the default of %v in %q", f.Name, v.Interface(), rows[i][2])
		}
	}
	check.Equal(t, len(rows), zero.NumField(), "rows, and fields")
}

// The example of docs/errors.md.
func errorsPage(err error) {
	var failed *lull.Error
	switch {
	case errors.Is(err, lull.ErrCircuitOpen) && errors.As(err, &failed):
		fmt.Println("try again in", failed.RetryAt)
	case errors.Is(err, lull.ErrBudgetExhausted):
		fmt.Println("the dependency has trouble; this is not the moment")
	case errors.Is(err, io.ErrUnexpectedEOF): // the last real error is in it, too
		fmt.Println("the answer was cut")
	}
}

func Example_errors() {
	errorsPage(fmt.Errorf("orders: %w", io.ErrUnexpectedEOF))
	// Output: the answer was cut
}

// The lines of docs/which-policy.md.
func whichPolicy() error {
	warehouse, err := lull.NewDependency("warehouse", queue.Policy())
	_ = warehouse
	if err != nil {
		return err
	}
	for _, make := range []func() (*http.Client, error){
		func() (*http.Client, error) {
			client, err := lullhttp.NewClient(preset.Edge())
			return client, err
		},
		func() (*http.Client, error) {
			client, err := lullhttp.NewClient(preset.CommandLine())
			return client, err
		},
		func() (*http.Client, error) {
			client, err := lullhttp.NewClient(preset.BackgroundWorker())
			return client, err
		},
		func() (*http.Client, error) {
			client, err := lullhttp.NewClient(preset.ExternalAPI())
			return client, err
		},
		func() (*http.Client, error) {
			client, err := lullhttp.NewClient(preset.InternalService())
			return client, err
		},
		func() (*http.Client, error) {
			client, err := lullhttp.NewClient(lull.Policy{})
			return client, err
		},
		func() (*http.Client, error) {
			client, err := lullhttp.NewClient(lull.Policy{Hedge: hedge.Config{Attempts: 2}})
			return client, err
		},
		func() (*http.Client, error) {
			policy := preset.ExternalAPI()
			policy.Deadline = 20 * time.Second
			policy.Limit.InFlight = 32
			return lullhttp.NewClient(policy)
		},
	} {
		if _, err := make(); err != nil {
			return err
		}
	}
	return nil
}

func TestTheLinesOfWhichPolicy(t *testing.T) {
	check.Equal(t, whichPolicy(), nil, "whichPolicy()")
}

func firstHedge(ctx context.Context, countStock func(context.Context) (int, error)) error {
	stock, err := lull.NewDependency("stock", lull.Policy{Hedge: hedge.Config{Attempts: 2}})
	if err != nil {
		return err
	}
	n, err := lull.DoHedged(ctx, stock, func(ctx context.Context) (int, error) {
		return countStock(ctx)
	})
	_ = n
	return err
}

func TestTheLinesOfYourFirstHedge(t *testing.T) {
	if err := firstHedge(t.Context(), func(context.Context) (int, error) { return 7, nil }); err != nil {
		t.Error(err)
	}
}
