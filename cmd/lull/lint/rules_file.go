package lint

import (
	"fmt"

	"github.com/lullgo/lull/internal/choice"
)

// Rules about the files themselves.
const (
	ruleCap       = "cap-below-base"
	ruleMistake   = "file-mistake"
	ruleUnknown   = "policy-unknown"
	ruleDirective = "ignore-comment"
)

const mostGuesses = 20

func policyUnknown(p *pass) {
	var names []string
	for _, d := range p.dependencies {
		names = append(names, d.Name)
	}
	seen := map[string]bool{}
	for _, s := range p.services {
		for _, c := range s.calls {
			if c.to != nil || seen[s.in.name+"\x00"+c.Dependency] {
				continue
			}
			seen[s.in.name+"\x00"+c.Dependency] = true
			if c.policies > 1 {
				p.report(s.in, c.path, fmt.Sprintf("%s calls %s, and %d files say with what policy, but not its own: it is left out of all sums", s.Name, c.Dependency, c.policies), nil,
					Fix{Text: fmt.Sprintf("add %s to the dependencies of %s, or check the files of one program at a time", c.Dependency, s.in.name)})
				continue
			}
			guess := ""
			if near := choice.Nearest(c.Dependency, names); near != "" && len(seen) < mostGuesses {
				guess = "; did you mean " + near + "?"
			}
			p.report(s.in, c.path, fmt.Sprintf("%s calls %s, and no file says with what policy: it is left out of all sums", s.Name, c.Dependency), nil,
				Fix{Text: fmt.Sprintf("add %s to the dependencies of a file, and check the files together%s", c.Dependency, guess)})
		}
	}
}
