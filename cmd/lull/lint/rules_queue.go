package lint

import (
	"fmt"
	"math"

	"github.com/lullgo/lull/internal/saturating"
)

func visibilityBelowHandler(p *pass, s *service) {
	handler, steps := s.Handler, []Step{{"the handler runs for at most", pretty(s.Handler), ""}}
	if handler == 0 {
		stages := s.stages()
		var l ledger
		s.addUp(&l, stages)
		handler, steps = together(stages), l.steps
	}
	if handler <= 0 || s.Visibility <= 0 || s.Visibility > handler {
		return
	}
	severity, message := Error, "messages for %s are handed out again after %s, and handling one may take %s"
	if s.hasLullServer() {
		severity, message = Note, "messages for %s are hidden for %s, and handling one may take %s: lull's consumer must be able to extend that"
	}
	steps = append(steps,
		Step{"the message is hidden for", pretty(s.Visibility), ""},
		Step{"two consumers work on it for", pretty(handler - s.Visibility), ""})
	enough := up(saturating.Add(handler, handler/2))
	if handler == math.MaxInt64 {
		p.reportAs(severity, s.in, s.path+".visibility", fmt.Sprintf("messages for %s are hidden for %s, and nothing ends the calls of the handler", s.Name, pretty(s.Visibility)),
			steps[:len(steps)-1], Fix{Text: "write a deadline in the dependencies that it calls, and handler in " + s.path})
		return
	}
	p.reportAs(severity, s.in, s.path+".visibility",
		fmt.Sprintf(message, s.Name, pretty(s.Visibility), pretty(handler)),
		steps,
		Fix{Text: fmt.Sprintf("can the visibility timeout of the queue be %s, half as long again as the handler? Then set it there, and write visibility: %s in %s. Or let the consumer extend it while the handler runs, as lull's does, and leave visibility out",
			pretty(enough), pretty(enough), s.path)})
}
