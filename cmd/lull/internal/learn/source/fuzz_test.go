package source

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fuzz reads what fuzzing comes up with, and checks what holds for all data.
func fuzz(f *testing.F, format string, fields map[string]string, seeds ...string) {
	for _, name := range seeds {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "")
	}
	f.Add([]byte("x"), "[%tr] %ST %Ta")
	f.Add([]byte("x"), `$msec "$request" $status $request_time`)
	f.Fuzz(func(t *testing.T, text []byte, logFormat string) {
		d, err := Read(t.Context(), []string{"-"}, Options{Format: format, Fields: fields, LogFormat: logFormat, Zone: time.UTC, Stdin: bytes.NewReader(text)})
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without a text")
			}
			return
		}
		for _, s := range d.Series {
			if !slices.IsSorted(s.Edges) || s.Step < 100*time.Millisecond || s.Start.IsZero() || len(s.Points) == 0 {
				t.Fatalf("%+v", s)
			}
			for _, p := range s.Points {
				for name, b := range p.Ended {
					n := 0.
					for _, c := range b.Counts {
						n += c
						if !(c >= -1e-6*b.N) {
							t.Fatalf("%s: %+v", name, b)
						}
					}
					if name == "" || name == together || b.Counts != nil && (len(b.Counts) != len(s.Edges)+1 || math.Abs(n-b.N) > 1e-6*(1+b.N)) {
						t.Fatalf("%s: %d edges, sum %v: %+v", name, len(s.Edges), n, b)
					}
				}
			}
		}
		for _, src := range d.Sources {
			if src.Used < 0 || src.Kind != "otlp" && src.Used > src.Lines {
				t.Fatalf("%+v", src)
			}
		}
	})
}

func FuzzNginx(f *testing.F)   { fuzz(f, "nginx", nil, "nginx.log") }
func FuzzEnvoy(f *testing.F)   { fuzz(f, "envoy", nil, "envoy.log", "istio.log") }
func FuzzHAProxy(f *testing.F) { fuzz(f, "haproxy", nil, "haproxy.log") }
func FuzzALB(f *testing.F)     { fuzz(f, "alb", nil, "alb.log") }
func FuzzJSON(f *testing.F) {
	fuzz(f, "json", nil, "nginx.json", "envoy.json", "caddy.json", "lull.json")
}
func FuzzCSV(f *testing.F)        { fuzz(f, "csv", map[string]string{"unit": "ms"}, "jmeter.csv") }
func FuzzPrometheus(f *testing.F) { fuzz(f, "prometheus", nil, "prometheus.txt", "openmetrics.txt") }
func FuzzOTLP(f *testing.F)       { fuzz(f, "otlp", nil, "otlp.json") }
func FuzzRecognise(f *testing.F) {
	fuzz(f, "", nil, "nginx.log", "envoy.log", "haproxy.log", "alb.log", "lull.json", "jmeter.csv", "openmetrics.txt", "otlp.json")
}
