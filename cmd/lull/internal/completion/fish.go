package completion

import (
	"fmt"
	"strings"
)

// fish writes the script for fish.
func fish(b *strings.Builder, root command) {
	var groups []string
	for _, c := range root.commands {
		if len(c.commands) > 0 {
			groups = append(groups, c.name())
		}
	}
	fmt.Fprintf(b, `# fish completion of lull, printed by: lull completion fish
function __lull_at --description 'Succeed if this is the command that is being typed'
    set -l all (commandline -poc)
    set -e all[1]
    set -l command
    for word in $all
        string match -q -- '-*' $word; and continue
        set -a command $word
        contains -- "$command" %s; or break # a command of it follows
    end
    test "$command" = "$argv"
end
complete -c lull -f
`, strings.Join(groups, " "))
	fishCommand(b, root)
}

// fishCommand writes the lines for one command, and then those of its commands.
func fishCommand(b *strings.Builder, c command) {
	when := strings.Join(append([]string{"__lull_at"}, c.path...), " ")
	for _, below := range c.commands {
		fmt.Fprintf(b, "complete -c lull -n %s -a %s -d %s\n", fishQuote(when), below.name(), fishQuote(below.help))
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
	if len(c.values) > 0 {
		fmt.Fprintf(b, "complete -c lull -n %s -a %s\n", fishQuote(when), fishQuote(strings.Join(c.values, " ")))
	}
	if c.files {
		fmt.Fprintf(b, "complete -c lull -n %s -F\n", fishQuote(when))
	}
	if c.programs {
		fmt.Fprintf(b, "complete -c lull -n %s -a '(__fish_complete_subcommand --fcs-skip=2)'\n", fishQuote(when))
	}
	for _, below := range c.commands {
		fishCommand(b, below)
	}
}

// fishQuote makes one word of text.
func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
