package demo

import (
	"encoding/json"
	"io"
)

// printTailJSON is printJSON for the scenario tail.
func printTailJSON(out io.Writer, r result) error {
	s := r.setting
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Setting tailJSONSetting `json:"setting"`
		Run     jsonRun         `json:"run"`
		Clients []tailFigures   `json:"clients"`
	}{
		Setting: tailJSONSetting{
			Scenario: s.Scenario, Duration: milliseconds(s.Duration), Load: s.Load, Calls: round(s.offered(), 3),
			Capacity: s.Capacity, Workers: s.workers(), Queue: s.Queue,
			Median: milliseconds(tailMedian), Spread: tailSpread, Tail: s.Tail, Factor: tailFactor,
			SlowAt: milliseconds(s.OutageAt), Slow: milliseconds(s.Outage),
			Timeout: milliseconds(s.Timeout), HedgeDelay: milliseconds(s.HedgeDelay), Seed: s.Seed, Lull: s.hedgePolicyText(),
		},
		Run:     r.json(),
		Clients: r.hedgers,
	})
}

type tailJSONSetting struct {
	Scenario   scenario `json:"scenario"`
	Duration   float64  `json:"duration_ms"`
	Load       float64  `json:"load"`
	Calls      float64  `json:"calls_per_second"`
	Capacity   int      `json:"slow_capacity_rps"`
	Workers    int      `json:"workers"`
	Queue      int      `json:"queue"`
	Median     float64  `json:"median_ms"`
	Spread     float64  `json:"spread"`
	Tail       float64  `json:"tail"`
	Factor     int      `json:"tail_factor"`
	SlowAt     float64  `json:"slow_at_ms"`
	Slow       float64  `json:"slow_ms"`
	Timeout    float64  `json:"attempt_timeout_ms"`
	HedgeDelay float64  `json:"naive_hedge_delay_ms"`
	Seed       uint64   `json:"seed"`
	Lull       string   `json:"lull_policy"`
}
