package file_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/internal/must"
)

const docs = "../../../../../docs/"

// The proxy takes the files of docs/deploy, and the one of docs/proxy.md.
func TestFilesOfTheDocsAreValid(t *testing.T) {
	files := map[string][]byte{"compose/proxy.yaml": must.Have(os.ReadFile(docs + "deploy/compose/proxy.yaml"))}
	for _, manifest := range []string{"sidecar.yaml", "gateway-less.yaml"} {
		objects := yaml.NewDecoder(bytes.NewReader(must.Have(os.ReadFile(docs + "deploy/" + manifest))))
		for {
			var object struct {
				Data       map[string]string
				StringData map[string]string `yaml:"stringData"`
			}
			err := objects.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			must.Succeed(err)
			for _, text := range []string{object.Data["proxy.yaml"], object.StringData["proxy.yaml"]} {
				if text != "" {
					files[manifest] = []byte(text)
				}
			}
		}
	}
	page := string(must.Have(os.ReadFile(docs + "proxy.md")))
	_, block, _ := strings.Cut(page, "```yaml\n")
	block, _, _ = strings.Cut(block, "```\n")
	files["proxy.md"] = []byte(block)
	for name, text := range files {
		f, err := file.Parse(name, text, nil)
		if err != nil || len(f.Upstreams) == 0 || len(f.Unused()) > 0 {
			t.Errorf("%s: %v, %+v\n%s", name, err, f, text)
		}
	}
	if len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
}
