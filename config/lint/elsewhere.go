package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lullgo/lull/config/convert"
)

// elsewhere is a fix for the dependency at path of a file of another system. It names the fields
// of a policy, and what they are called there. Nothing there has the values of a policy, so it has
// no changes.
func (u *unit) elsewhere(path string, fix Fix) Fix {
	dependency, _ := u.split(path)
	system := u.set.Format(dependency)
	var named, missing []string
	for _, c := range fix.Changes {
		_, field := u.split(c.Path)
		if name, ok := convert.FieldName(system, field); !ok {
			missing = append(missing, field)
		} else if each := field + " is " + name; !slices.Contains(named, each) {
			named = append(named, each)
		}
	}
	fix.Text = "as a policy of lull: " + fix.Text
	if len(named) > 0 {
		fix.Text += fmt.Sprintf("; in %s %s", system.System(), strings.Join(named, ", "))
	}
	if len(missing) > 0 {
		fix.Text += fmt.Sprintf("; %s has no %s", system.System(), strings.Join(missing, ", "))
	}
	fix.Changes = nil
	return fix
}
