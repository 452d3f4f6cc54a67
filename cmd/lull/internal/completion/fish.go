package completion

import (
	"fmt"
	"strings"
)

// fish writes the script for fish.
func fish(b *strings.Builder, commands []command) {
	b.WriteString("# fish completion of lull, printed by: lull completion fish\ncomplete -c lull -f\n")
	for _, c := range commands {
		when := "__fish_use_subcommand"
		if c.name != "" {
			when = "__fish_seen_subcommand_from " + c.name
			fmt.Fprintf(b, "complete -c lull -n __fish_use_subcommand -a %s -d %s\n", c.name, fishQuote(c.help))
		}
		for _, f := range c.flags {
			fmt.Fprintf(b, "complete -c lull -n %s -l %s", fishQuote(when), f.name)
			if f.short != "" {
				fmt.Fprintf(b, " -s %s", f.short)
			}
			switch {
			case f.takes && f.files:
				b.WriteString(" -r -F")
			case f.takes:
				b.WriteString(" -x")
			}
			if len(f.values) > 0 {
				fmt.Fprintf(b, " -a %s", fishQuote(strings.Join(f.values, " ")))
			}
			fmt.Fprintf(b, " -d %s\n", fishQuote(f.help))
		}
		if c.name == "" {
			continue
		}
		if len(c.values) > 0 {
			fmt.Fprintf(b, "complete -c lull -n %s -a %s\n", fishQuote(when), fishQuote(strings.Join(c.values, " ")))
		}
		if c.files {
			fmt.Fprintf(b, "complete -c lull -n %s -F\n", fishQuote(when))
		}
		if c.programs {
			fmt.Fprintf(b, "complete -c lull -n %s -a '(__fish_complete_subcommand --fcs-skip=2)'\n", fishQuote(when))
		}
	}
}

// fishQuote makes one word of text.
func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
