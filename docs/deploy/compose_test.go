package deploy

import (
	"os"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"
	"go.yaml.in/yaml/v4"

	"github.com/lullgo/lull/internal/must"
)

func validateCompose(file []byte) error {
	var project map[string]any
	if err := yaml.Unmarshal(file, &project); err != nil {
		return err
	}
	return schema.Validate(project)
}

func TestComposeFileIsValid(t *testing.T) {
	file := must.Have(os.ReadFile("compose.yaml"))
	if err := validateCompose(file); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][2]string{{"cap_drop:", "cap_dropp:"}, {"condition: service_healthy", "condition: healthy"}, {"mem_limit: 128m", "mem_limit: [128m]"}} {
		changed := strings.Replace(string(file), wrong[0], wrong[1], 1)
		if err := validateCompose([]byte(changed)); err == nil {
			t.Errorf("%q instead of %q is accepted", wrong[1], wrong[0])
		}
	}
}

// The application has the doors on loopback because it is in the network of the proxy. The ports are then the proxy's.
func TestComposeServicesShareLoopback(t *testing.T) {
	var project struct {
		Services map[string]struct {
			NetworkMode string `yaml:"network_mode"`
			Ports       []string
		}
	}
	must.Succeed(yaml.Unmarshal(must.Have(os.ReadFile("compose.yaml")), &project))
	if app := project.Services["app"]; app.NetworkMode != "service:proxy" || app.Ports != nil {
		t.Errorf("app: %+v", app)
	}
}
