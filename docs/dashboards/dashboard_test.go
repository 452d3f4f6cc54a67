package dashboards

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/lullgo/lull/internal/must"
)

// A dashboard is what the tests read of lull.json.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct{ List []struct{ Name string } }
	Panels        []panel
}

// A panel is one picture, or with the type "row" the title over those that follow.
type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	Targets     []query
}

// A query is what a panel asks Prometheus for. Its legend has labels as {{name}}.
type query struct {
	Datasource         struct{ UID string }
	Expr, LegendFormat string
}

func readDashboard() (d dashboard) {
	must.Succeed(json.Unmarshal(must.Have(os.ReadFile("lull.json")), &d))
	return d
}

// What Grafana needs of a dashboard: panels with ids of their own that do not overlap, each
// with a data source and queries.
func TestDashboardIsSound(t *testing.T) {
	d := readDashboard()
	if d.Title == "" || d.UID == "" || d.SchemaVersion == 0 || len(d.Panels) < 20 {
		t.Fatalf("%+v", d)
	}
	known := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		known = append(known, v.Name)
	}
	variable := regexp.MustCompile(`\$\{?(\w+)`)
	taken := make(map[[2]int]string)
	ids := make(map[int]bool)
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have id %d", p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
		for _, q := range p.Targets {
			if p.Datasource.UID != "${datasource}" || q.Datasource != p.Datasource {
				t.Errorf("%s does not ask the data source that was chosen", p.Title)
			}
			for _, m := range variable.FindAllStringSubmatch(q.Expr, -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s: there is no variable $%s", p.Title, m[1])
				}
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is beyond the edge", p.Title)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" {
					t.Fatalf("%s lies over %s", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
	}
}

type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert, Record, Expr string
			Labels              map[string]string
			Annotations         map[string]string
		}
	}
}

// Each alert has a severity, a paragraph in the runbook, and a test in which it fires.
func TestAlertsAreDocumentedAndTested(t *testing.T) {
	data := must.Have(os.ReadFile("rules.yml"))
	var f ruleFile
	must.Succeed(yaml.Unmarshal(data, &f))
	book := must.Have(os.ReadFile("../errors.md"))
	tests := must.Have(os.ReadFile("alerts.test.yml"))
	n := 0
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			n++
			if !bytes.Contains(book, []byte("\n### "+r.Alert+"\n")) {
				t.Errorf("docs/errors.md has no section on %s", r.Alert)
			}
			if !strings.HasSuffix(r.Annotations["runbook_url"], "docs/errors.md#"+strings.ToLower(r.Alert)) {
				t.Errorf("%s leads to %q", r.Alert, r.Annotations["runbook_url"])
			}
			if !bytes.Contains(tests, []byte("alertname: "+r.Alert+"\n        exp_alerts:\n")) {
				t.Errorf("no test in which %s fires", r.Alert)
			}
			if !bytes.Contains(tests, []byte("alertname: "+r.Alert+", exp_alerts: []")) {
				t.Errorf("no test in which %s does not fire", r.Alert)
			}
			if s := r.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s has severity %q", r.Alert, s)
			}
		}
	}
	if n < 9 {
		t.Errorf("%d alerts", n)
	}
}

// docs/telemetry.md explains each panel, by its title.
func TestEveryPanelIsExplained(t *testing.T) {
	page := must.Have(os.ReadFile("../telemetry.md"))
	for _, p := range readDashboard().Panels {
		if p.Type != "row" && !bytes.Contains(page, []byte("**"+p.Title+"**")) {
			t.Errorf("docs/telemetry.md does not explain the panel %q", p.Title)
		}
	}
}
