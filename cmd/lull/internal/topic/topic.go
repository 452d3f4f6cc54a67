// Package topic has the pages of lull help TOPIC: what several commands have in common, and
// what a user of the program has to know of policies. Each page is a text file of this folder.
// Lists that the code has, such as those of formats and reasons, are put in from there.
package topic

import (
	"embed"
	"fmt"
	"strings"

	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
)

//go:embed *.txt
var pages embed.FS

// Names are all topics, in the order in which they are listed.
var Names = []string{"policies", "values", "files", "formats", "budget", "breaker", "jitter", "reasons", "exit-codes", "environment"}

// Page returns the text of a topic, if there is one. The name may be in any case, and have blanks for hyphens.
func Page(name string) (text string, ok bool) {
	data, err := pages.ReadFile(strings.ReplaceAll(strings.ToLower(name), " ", "-") + ".txt")
	if err != nil {
		return "", false
	}
	text = string(data)
	for mark, list := range lists {
		text = strings.Replace(text, mark, list(), 1)
	}
	return text, true
}

// lists are what is put into the pages, by what stands for it there. Each has whole lines.
var lists = map[string]func() string{
	"{{formats}}\n": func() string {
		var b strings.Builder
		for _, f := range convert.Formats() {
			b.WriteString(term.Fill(fmt.Sprintf("  %-15s", f), f.Title()))
		}
		return b.String()
	},
	"{{presets}}\n": func() string { return term.Fill("  ", strings.Join(config.Presets(), ", ")) },
	"{{reasons}}\n": func() string {
		var b strings.Builder
		for r := range engine.Reason(engine.Reasons) {
			b.WriteString(term.Fill(fmt.Sprintf("  %-20s", r), r.Meaning()))
		}
		return b.String()
	},
}
