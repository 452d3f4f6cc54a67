package demo

import (
	"encoding/json"
	"io"
)

// printJSON prints the figures of the table for programs to read.
func printJSON(out io.Writer, r result) error {
	s := r.setting
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Setting jsonSetting `json:"setting"`
		Run     jsonRun     `json:"run"`
		Clients []figures   `json:"clients"`
	}{
		Setting: jsonSetting{
			Duration: milliseconds(s.Duration), Load: s.Load, Calls: round(s.offered(), 3),
			Capacity: s.Capacity, Workers: workers, Service: milliseconds(s.service()), Queue: s.Queue,
			OutageAt: milliseconds(s.OutageAt), Outage: milliseconds(s.Outage), Kind: string(s.Kind),
			Timeout: milliseconds(s.Timeout), Attempts: s.Attempts, Seed: s.Seed, Lull: s.policyText(),
			PeakWindow: milliseconds(peakWindow), RecoveryWindow: milliseconds(recoveryWindow), RecoveryShare: recoveryShare,
		},
		Run:     r.json(),
		Clients: r.clients,
	})
}

func (r result) json() jsonRun {
	return jsonRun{
		Measured: milliseconds(r.measured), Interrupted: r.interrupted, Unfinished: r.unfinished,
		Late: milliseconds(r.late.p99()), Troubles: r.troubles,
	}
}

type jsonSetting struct {
	Duration       float64 `json:"duration_ms"`
	Load           float64 `json:"load"`
	Calls          float64 `json:"calls_per_second"`
	Capacity       int     `json:"capacity_rps"`
	Workers        int     `json:"workers"`
	Service        float64 `json:"service_ms"`
	Queue          int     `json:"queue"`
	OutageAt       float64 `json:"outage_at_ms"`
	Outage         float64 `json:"outage_ms"`
	Kind           string  `json:"outage_kind"`
	Timeout        float64 `json:"attempt_timeout_ms"`
	Attempts       int     `json:"attempts"`
	Seed           uint64  `json:"seed"`
	Lull           string  `json:"lull_policy"`
	PeakWindow     float64 `json:"peak_window_ms"`
	RecoveryWindow float64 `json:"recovery_window_ms"`
	RecoveryShare  float64 `json:"recovery_share"`
}

// jsonRun is how the run itself went.
type jsonRun struct {
	Measured    float64 `json:"measured_ms"`      // calls were begun for so long
	Interrupted bool    `json:"interrupted"`      // before its time
	Unfinished  int     `json:"unfinished_calls"` // ended by the demo
	Late        float64 `json:"late_p99_ms"`      // one call in a hundred began so late or later
	Troubles    int     `json:"local_failures"`   // attempts that this machine could not make
}
