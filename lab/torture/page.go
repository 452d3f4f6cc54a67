package torture

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string

	page = template.Must(template.New("page").Funcs(template.FuncMap{
		"class":  func(g Grade) string { return strings.ReplaceAll(string(g), "/", "") },
		"counts": func(l Line) string { return fmt.Sprintf("%d/%d/%d", l.Pass, l.Warn, l.Fail) },
	}).Parse(pageHTML))
)

// mostLines is how much of a time line is on the page: its beginning and its end.
const mostLines = 40

type pageRow struct {
	Result
	First bool // of its group
	Span  int
	Cells []pageCell
}

type pageCell struct {
	Result
	Name, ID string
	Lines    []pageLine
}

type pageLine struct{ At, Text string }

// WritePage writes cards as one page of HTML that loads nothing: a matrix of cases and
// clients (or servers), with the time line behind each cell.
func WritePage(w io.Writer, cards []*Card) error {
	sum := sha256.Sum256([]byte(pageCSS))
	groups, lines := Matrix(cards)
	view := struct {
		Cards     []*Card
		Server    bool
		Groups    []string
		Lines     [][]Line
		Rows      []pageRow
		Style     template.CSS
		StyleHash template.HTMLAttr
	}{Cards: cards, Server: ofServers(cards), Groups: groups, Lines: lines, Style: template.CSS(pageCSS), StyleHash: template.HTMLAttr("sha256-" + base64.StdEncoding.EncodeToString(sum[:]))}
	rows := map[string]int{}
	for k, card := range cards {
		for _, r := range card.Results {
			i, ok := rows[r.Case]
			if !ok {
				i = len(view.Rows)
				rows[r.Case] = i
				view.Rows = append(view.Rows, pageRow{Result: r, First: i == 0 || view.Rows[i-1].Group != r.Group, Span: len(cards) + 1, Cells: make([]pageCell, len(cards))})
			}
			view.Rows[i].Cells[k] = pageCell{Result: r, Name: card.Name, ID: fmt.Sprintf("c%d-%s", k, r.Case), Lines: linesOf(r.Events, r.Calls > 1)}
		}
	}
	return page.Execute(w, view)
}

func linesOf(events []Event, several bool) []pageLine {
	var lines []pageLine
	for i, e := range events {
		if skip := len(events) - mostLines; skip > 0 && i >= mostLines/2 && i < len(events)-mostLines/2 {
			if i == mostLines/2 {
				lines = append(lines, pageLine{"", fmt.Sprintf("(%d lines are left out)", skip)})
			}
			continue
		}
		text := e.Text
		if several {
			text = fmt.Sprintf("call %d: %s", e.Call, text)
		}
		lines = append(lines, pageLine{fmt.Sprintf("%.3f s", e.At.Seconds()), text})
	}
	return lines
}
