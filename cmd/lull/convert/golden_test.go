package convert

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/golden"
)

// Realistic files, their conversions, and the reports.
func TestGoldenFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		to   Format
	}{
		{"istio.yaml", Lull}, {"envoy.yaml", Lull}, {"grpc.json", Lull}, {"gateway.yaml", Lull},
		{"lull.yaml", GRPC}, {"lull.yaml", Istio}, {"lull.yaml", Envoy}, {"lull.yaml", Gateway},
		{"envoy-gateway.yaml", Lull}, {"lull.yaml", EnvoyGateway}, {"envoy-gateway.yaml", Envoy}, {"envoy-gateway.yaml", Istio}, {"envoy.yaml", EnvoyGateway}, {"istio.yaml", EnvoyGateway},
		{"linkerd.yaml", Lull}, {"resilience4j.yaml", Lull}, {"resilience4j.yaml", Istio}, {"dapr.yaml", Lull}, {"lull.yaml", Dapr}, {"dapr.yaml", Istio}, {"envoy.yaml", Dapr}, {"grpc.json", Dapr},
		{"istio.yaml", Envoy}, {"envoy.yaml", Istio}, {"envoy.yaml", Gateway},
	} {
		out, err := Convert(open(t, "golden/"+c.name), c.to, Options{})
		if err != nil {
			t.Errorf("%s to %v: %v", c.name, c.to, err)
			continue
		}
		for _, e := range out.Report {
			if e.Line == 0 || e.Column == 0 || e.File != c.name || e.Path == "" || e.Why == "" {
				t.Errorf("%s to %v: %+v", c.name, c.to, e)
			}
		}
		base := "golden/" + strings.TrimSuffix(c.name, filepath.Ext(c.name)) + "-to-" + c.to.String()
		golden.File(t, "testdata/"+base+".out", string(out.Data))
		golden.File(t, "testdata/"+base+".report", out.Report.String())
		// The format of the result is recognised.
		again, err := Convert([]File{{"again", out.Data}}, Lull, Options{})
		if err != nil {
			t.Errorf("%s to %v cannot be read: %v", c.name, c.to, err)
		} else if c.to != GRPC && len(policies(t, again.Data)) == 0 {
			t.Errorf("%s to %v: nothing is in it", c.name, c.to)
		}
	}
}
