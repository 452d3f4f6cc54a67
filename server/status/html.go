package status

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"strings"
	"time"
)

// The page is written without html/template: it calls methods by names that it learns at run time, so the linker keeps every
// exported method of the program. A client with this page would have 10.3 MB, and not 7.9.

//go:embed page.css
var style string

// A document is HTML in the making.
type document struct{ bytes.Buffer }

// put writes HTML. format is constant HTML; values are numbers, or text that is escaped, also for attributes in double quotes.
func (d *document) put(format string, values ...any) {
	for i, v := range values {
		switch v.(type) {
		case int, int64, float64:
		default:
			values[i] = html.EscapeString(strings.ReplaceAll(fmt.Sprint(v), "\x00", "\uFFFD"))
		}
	}
	fmt.Fprintf(d, format, values...)
}

// putIf is put if that holds.
func (d *document) putIf(holds bool, format string, values ...any) {
	if holds {
		d.put(format, values...)
	}
}

// heads writes the head of a table.
func (d *document) heads(columns ...string) {
	d.put("<thead><tr>")
	for _, c := range columns {
		d.put(`<th scope="col">%s</th>`, c)
	}
	d.put("</tr></thead>\n")
}

// duration returns seconds for people.
func duration(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	return (time.Duration(min(seconds, 1e9)) * time.Second).String()
}

// view is what the page shows.
type view struct {
	snapshot
	Refresh int
	Force   bool
	All     int // dependencies, also those that are not shown
}

// html returns the page.
func (v *view) html() []byte {
	var d document
	d.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
`)
	d.putIf(v.Refresh > 0, "<meta http-equiv=\"refresh\" content=\"%d\">\n", v.Refresh)
	d.put("<title>Dependencies</title>\n<style>")
	d.WriteString(style)
	d.put(`</style>
</head>
<body>
<main>
<h1>Dependencies</h1>
<p>At <time>%s</time>.
`, v.Time.Format("2006-01-02 15:04:05 UTC"))
	if v.Refresh > 0 {
		d.put(`Loaded again every %d s: <a href="?">stop</a>.`, v.Refresh)
	} else {
		d.put(`<a href="?refresh=5">Load again every 5 s</a>.`)
	}
	d.put("\n<a href=\"?format=json\">JSON</a></p>\n")
	shown := len(v.Dependencies)
	d.putIf(shown < v.All, "<p>These are %d of %d, those with the most trouble. JSON has all.</p>\n", shown, v.All)
	v.states(&d)
	for i := range v.Dependencies {
		v.Dependencies[i].failures(&d)
	}
	d.put("</main>\n</body>\n</html>\n")
	return d.Bytes()
}

// states writes the table of all dependencies.
func (v *view) states(d *document) {
	d.put(`<div class="wide" role="region" aria-label="State" tabindex="0">
<table>
<caption>State now; failures are those of the last minute</caption>
`)
	columns := []string{"Dependency", "Circuit", "Retry budget", "In flight", "Waiting", "Throttle", "Failed calls"}
	if v.Force {
		columns = append(columns, "Force the circuit")
	}
	d.heads(columns...)
	d.put("<tbody>\n")
	for i := range v.Dependencies {
		one := &v.Dependencies[i]
		d.put("<tr>\n")
		one.state(d)
		if v.Force {
			d.put("<td>")
			one.force(d, v.Refresh)
			d.put("</td>\n")
		}
		d.put("</tr>\n")
	}
	d.putIf(len(v.Dependencies) == 0, "<tr><td colspan=\"%d\">none</td></tr>\n", len(columns))
	d.put("</tbody>\n</table>\n</div>\n")
}

// state writes the cells of the table's row.
func (one *dependency) state(d *document) {
	d.put(`<th scope="row">%s`, one.Name)
	d.putIf(!one.Watched, "<small>not watched</small>")
	d.put("</th>\n<td>")
	if c := one.Circuit; c.State == "" {
		d.put("none")
	} else {
		d.put(`<span class="%s">%s</span>`, c.State, c.State)
		d.putIf(c.Forced, " (forced)")
		d.putIf(c.OpenFor > 0, "<small>since %s</small>", duration(c.OpenFor))
		d.putIf(c.ProbeIn > 0, "<small>next probe in %s</small>", duration(c.ProbeIn))
	}
	d.put("</td>\n<td>")
	if b := one.Budget; b == nil {
		d.put("none")
	} else {
		d.put("%.4g", b.Tokens)
		d.putIf(b.Stock != 0, "<small>stock of %.4g</small>", b.Stock)
	}
	d.put("</td>\n<td>")
	if l := one.Limit; l == nil {
		d.put("no limit</td>\n<td>%d for a retry", one.Waiting)
	} else {
		d.put("%d of %d</td>\n<td>%d for a retry<small>%d for room</small>", l.InFlight, l.Most, one.Waiting, l.Waiting)
	}
	d.put("</td>\n<td>")
	if t := one.Throttle; t == nil {
		d.put("none")
	} else if t.Rate == 0 {
		d.put("refuses %.2g of all", t.Refusal)
	} else {
		d.put("%.3g attempts/s", t.Rate)
		d.putIf(t.Wait > 0, "<small>a wait of %s</small>", duration(t.Wait))
	}
	d.put("</td>\n<td>")
	if one.Observed {
		d.put("%d", one.Failed)
	} else {
		d.put("no event yet")
	}
	d.put("</td>\n")
}

// force writes the buttons for the circuit, if there is one.
func (one *dependency) force(d *document, refresh int) {
	if one.Circuit.State == "" {
		return
	}
	d.put(`<form method="post" action="?`)
	d.putIf(refresh > 0, "refresh=%d", refresh)
	d.put(`"><input type="hidden" name="dependency" value="%s">
<button name="circuit" value="open" aria-label="Force the circuit of %s open">open</button>
<button name="circuit" value="closed" aria-label="Force the circuit of %s closed">closed</button>
`, one.Name, one.Name, one.Name)
	d.putIf(one.Circuit.Forced, `<button name="circuit" value="auto" aria-label="Let the breaker of %s decide">auto</button>`, one.Name)
	d.put("</form>")
}

// failures writes what failed, if something has.
func (one *dependency) failures(d *document) {
	if len(one.LastMinute) == 0 && len(one.Errors) == 0 {
		return
	}
	d.put("<section>\n<h2>%s</h2>\n", one.Name)
	d.putIf(one.Circuit.Change != "", "<p>Circuit: %s, %s ago</p>\n", one.Circuit.Change, duration(one.Circuit.ChangeAgo))
	if len(one.LastMinute) > 0 {
		d.put("<table>\n<caption>What failed or was refused in the last minute</caption>\n")
		d.heads("Reason", "Calls", "Without an attempt", "Hedges refused")
		d.put("<tbody>\n")
		for _, r := range one.LastMinute {
			d.put("<tr><th scope=\"row\">%s<small>%s</small></th><td>%d</td><td>%d</td><td>%d</td></tr>\n", r.Reason, r.Meaning, r.Calls, r.Unattempted, r.Hedges)
		}
		d.put("</tbody>\n</table>\n")
	}
	if len(one.Errors) > 0 {
		d.put(`<div class="wide" role="region" aria-label="Errors" tabindex="0"><table>
<caption>The latest failed attempt of each code and operation</caption>
`)
		d.heads("Code", "Error", "Operation", "Attempt", "Ago", "Times")
		d.put("<tbody>\n")
		for _, e := range one.Errors {
			d.put("<tr><th scope=\"row\">%s<small>%s</small></th><td class=\"text\">%s</td><td>%s</td><td>%d</td><td>%s</td><td>%d</td></tr>\n",
				e.Code, e.Kind, e.Text, e.Operation, e.Attempt, duration(e.Ago), e.Times)
		}
		d.put("</tbody>\n</table></div>\n")
	}
	d.put("</section>\n")
}
