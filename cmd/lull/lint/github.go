package lint

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Characters with a meaning in workflow commands of GitHub Actions. The first three have it
// everywhere, the others only in properties.
// https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
var (
	githubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

var githubCommands = [severities]string{"notice", "warning", "error"}

// GitHub writes the findings that are not ignored as commands of GitHub Actions, which shows them
// beside the changed lines.
func (r Report) GitHub(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, f := range r.Findings {
		if f.Ignored != nil {
			continue
		}
		fmt.Fprintf(b, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", githubCommands[min(f.Severity, Error)],
			githubProperty.Replace(slashed(f.File)), max(f.Line, 1), max(f.Column, 1), githubProperty.Replace(f.Rule), githubText.Replace(f.inFull()))
	}
	return b.Flush()
}
