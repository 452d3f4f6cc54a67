package lint

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
)

// mostRatio is the largest share of retries that is accepted without a finding.
const mostRatio = 0.2

func budgetMissing(p *pass, d *dependency) {
	if !d.Policy.Budget.Unlimited || !d.retries() {
		return
	}
	n := d.attempts()
	steps := []Step{
		{"calls, while it is down", "1000", "1000"},
		{"their retries, each as often as attempts say", "+ " + strconv.Itoa(1000*(n-1)), strconv.Itoa(1000 * n)},
	}
	if b := d.Policy.Budget; b.Window == 0 {
		stock := min(cmp.Or(b.Stock, budget.DefaultStock), float64(1000*(n-1)))
		steps = append(steps, Step{
			fmt.Sprintf("with a budget of %s of the calls that succeed: none does, and beside what those before have earned there is only what is in stock", percent(ratio(b))),
			"+ " + number(stock), number(1000 + stock),
		})
	}
	p.report(d.in, d.at("budget.unlimited"),
		fmt.Sprintf("the retries of calls to %s have no budget: when it is down it gets up to %d attempts for each call", d.Name, n),
		steps, d.write("or leave budget out: it means the same", "budget.unlimited", "false", "budget.ratio", percent(ratio(d.Policy.Budget))))
}

// ratio is the ratio of a budget, or its default, and not more than is sound.
func ratio(c budget.Config) float64 {
	if r := cmp.Or(c.Ratio, budget.DefaultRatio); r <= mostRatio {
		return r
	}
	return budget.DefaultRatio
}

func budgetTooLarge(p *pass, d *dependency) {
	c := d.Policy.Budget
	if c.Unlimited || d.attempts() < 2 {
		return
	}
	share := cmp.Or(c.Ratio, budget.DefaultRatio)
	steps := []Step{
		{"calls that earn", "1000", "1000"},
		{"the retries that they pay for, " + percent(share), "+ " + number(1000*share), number(1000 + 1000*share)},
	}
	field := "budget.ratio"
	whole := share
	fields := []string{"budget.ratio", percent(budget.DefaultRatio)}
	if c.Floor > 0 && d.Rate > 0 {
		extra := c.Floor / d.Rate
		whole += extra
		steps = append(steps, Step{fmt.Sprintf("the floor, %s of %s calls a second", number(c.Floor), number(d.Rate)), "+ " + number(1000*extra), number(1000 + 1000*whole)})
		if share <= mostRatio {
			field, fields = "budget.floor", []string{"budget.floor", "0"}
		} else {
			fields = append(fields, "budget.floor", "0")
		}
	}
	if whole <= mostRatio+1e-9 {
		return
	}
	steps = append(steps, Step{What: "with the most that is sound, " + percent(mostRatio), Total: number(1000 + 1000*mostRatio)})
	p.report(d.in, d.at(field),
		fmt.Sprintf("the budget for %s lets retries add %s to the calls, more than %s", d.Name, percent(whole), percent(mostRatio)),
		steps, d.write("20% at the most", fields...))
}

func hedgeWithoutBudget(p *pass, d *dependency) {
	h := d.Policy.Hedge
	if !d.hedged() || !d.Policy.Budget.Unlimited {
		return
	}
	n := h.Attempts
	fields := []string{"budget.unlimited", "false", "budget.ratio", percent(ratio(d.Policy.Budget))}
	steps := []Step{{"calls, all of them late", "1000", "1000"}}
	message := "%s bounds the hedges of calls to %s: when it is slow for all, it gets up to %d attempts for each call"
	bound := "nothing"
	if h.Share < 0 {
		if h.InFlight >= 0 {
			bound = fmt.Sprintf("only hedge.in_flight, %d at a time,", cmp.Or(h.InFlight, hedge.DefaultInFlight))
		}
		steps = append(steps, Step{"their hedges", "+ " + strconv.Itoa(1000*(n-1)), strconv.Itoa(1000 * n)})
		if h.Delay == hedge.AtOnce { // then every call is late
			fields = append(fields, "hedge.delay", "0")
		}
		fields = append(fields, "hedge.share", "0")
	} else {
		bound, message = "no budget", "%s bounds what follows a failure of a hedged call to %s: when it is down, it gets up to %d attempts for each call"
		share := cmp.Or(h.Share, hedge.DefaultShare)
		steps = []Step{
			{"calls, while it is down", "1000", "1000"},
			{"attempts that follow a failure at once", "+ " + strconv.Itoa(1000*(n-1)), strconv.Itoa(1000 * n)},
			{What: "hedge.share, " + percent(share) + ", bounds only what is sent beside a slow attempt"},
		}
	}
	p.report(d.in, d.at("budget.unlimited"), fmt.Sprintf(message, bound, d.Name, n), steps,
		d.write("or leave budget out: it means the same", fields...))
}
