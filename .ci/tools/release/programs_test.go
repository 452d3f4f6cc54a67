package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

var here = platform{runtime.GOOS, runtime.GOARCH}

// ofTheTest adds the program of the repository that clone makes. It prints 42, whatever it is asked.
func ofTheTest(s settings) settings {
	s.programs = []program{{"cmd/thing", nil, []printed{{"thing.1", []string{"man"}}}}}
	s.tried = here
	return s
}

// The archives of two platforms, with their checksums and lists of parts.
func TestPrograms(t *testing.T) {
	root := clone(t)
	to := filepath.Join(t.TempDir(), "programs")
	s := ofTheTest(settings{version: "v0.1.0", dryRun: true, again: true, to: to, all: []platform{here, {"windows", "amd64"}}})
	var out strings.Builder
	if err := release(t.Context(), &out, root, s); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "twice: the same bytes\n") {
		t.Errorf("printed\n%s", out.String())
	}
	name := "thing_v0.1.0_" + here.String()
	sums := checksums(t, to)
	check.Slices(t, sums, []string{name + ".cdx.json", name + ".tar.gz", "thing_v0.1.0_windows_amd64.cdx.json", "thing_v0.1.0_windows_amd64.zip"}, "checksums")

	files := untar(filepath.Join(to, name+".tar.gz"))
	check.Equal(t, string(files[name+"/thing.1"]), "42\n", "thing.1")
	check.Equal(t, string(files[name+"/LICENSE"]), "All of it is free.\n", "LICENSE")
	program := filepath.Join(t.TempDir(), "thing")
	must.Succeed(os.WriteFile(program, files[name+"/thing"], 0o755))
	if text, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil || string(text) != "42\n" {
		t.Errorf("the program printed %q, %v", text, err)
	}
	parts := bomOf(t, filepath.Join(to, name+".cdx.json"))
	library := "pkg:golang/github.com/example/thing/extra@v0.1.0"
	of := "pkg:golang/github.com/example/thing/cmd/thing@v0.1.0"
	check.Equal(t, parts.sha256(of), fmt.Sprintf("%x", sha256.Sum256(files[name+"/thing"])), "the program has the SHA-256")
	if got, want := parts.refs(), []string{of, library, "pkg:golang/github.com/example/thing@v0.1.0", "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go")}; !slices.Equal(got, want) {
		t.Errorf("parts %q, want %q", got, want)
	}
	if got := parts.on(of); !slices.Contains(got, library) || len(got) != 3 {
		t.Errorf("the program depends on %q", got)
	}
	check.Slices(t, parts.on("pkg:golang/thing@v0.1.0"), []string{of}, "all depends on")

	z := must.Have(zip.OpenReader(filepath.Join(to, "thing_v0.1.0_windows_amd64.zip")))
	defer z.Close()
	if last := z.File[len(z.File)-1]; last.Name != "thing_v0.1.0_windows_amd64/thing.exe" || last.Mode() != 0o755 {
		t.Errorf("the archive ends with %s, %v", last.Name, last.Mode())
	}

	if err := release(t.Context(), &out, root, s); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a second time: %v", err)
	}
}

// checksums returns the names in SHA256SUMS, which are those of all other files, after it has checked
// them.
func checksums(t *testing.T, folder string) (names []string) {
	t.Helper()
	for line := range strings.Lines(tool.ReadFile(filepath.Join(folder, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || sum != fmt.Sprintf("%x", sha256.Sum256(data)) {
			t.Errorf("%s: %v", line, err)
		}
		names = append(names, name)
	}
	all, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(all) != len(names)+1 {
		t.Errorf("%d checksums of %q, %v", len(names), all, err)
	}
	slices.Sort(names)
	return names
}

func untar(name string) map[string][]byte {
	files := map[string][]byte{}
	z := must.Have(gzip.NewReader(bytes.NewReader(must.Have(os.ReadFile(name)))))
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		must.Succeed(err)
		files[h.Name] = must.Have(io.ReadAll(r))
	}
}

// A partList is what a test reads of CycloneDX.
type partList struct {
	Components []struct {
		Ref    string `json:"bom-ref"`
		Hashes []struct{ Alg, Content string }
	}
	Dependencies []struct {
		Ref       string
		DependsOn []string
	}
}

func (p partList) refs() (all []string) {
	for _, c := range p.Components {
		all = append(all, c.Ref)
	}
	return all
}

func (p partList) sha256(ref string) string {
	for _, c := range p.Components {
		if c.Ref == ref && len(c.Hashes) == 1 && c.Hashes[0].Alg == "SHA-256" {
			return c.Hashes[0].Content
		}
	}
	return ""
}

func (p partList) on(ref string) []string {
	for _, d := range p.Dependencies {
		if d.Ref == ref {
			return d.DependsOn
		}
	}
	return nil
}

// bomOf reads a list of parts. It must be valid by the schema of CycloneDX 1.6, which is in the module
// that writes it.
func bomOf(t *testing.T, name string) (p partList) {
	t.Helper()
	dir := must.Have(tool.Output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")))
	c := jsonschema.NewCompiler()
	for _, schema := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		doc := unmarshalled(filepath.Join(strings.TrimSpace(dir), "schema", schema))
		must.Succeed(c.AddResource("http://cyclonedx.org/schema/"+strings.Replace(schema, "schemax", "schema", 1), doc))
	}
	c.AssertFormat()
	check.Equal(t, must.Have(c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")).Validate(unmarshalled(name)), nil, "%s", name)
	must.Succeed(json.Unmarshal(must.Have(os.ReadFile(name)), &p))
	return p
}

func unmarshalled(name string) any {
	return must.Have(jsonschema.UnmarshalJSON(bytes.NewReader(must.Have(os.ReadFile(name)))))
}

// The image is built with the Go that archives are built with, a release of the workspace's.
func TestDockerfileHasTheGoOfReleases(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	read := func(name string) string { return tool.ReadFile(filepath.Join(root, name)) }
	version, _, _ := strings.Cut(strings.TrimPrefix(read(".ci/toolchains"), "go"), "\n")
	if image := read("Dockerfile"); !strings.Contains(image, "\nFROM golang:"+version+" AS build\n") {
		t.Errorf(".ci/toolchains begins with %s, Dockerfile is\n%s", version, image)
	}
	if minor := version[:strings.LastIndexByte(version, '.')]; !strings.Contains("\n"+read("go.work"), "\ngo "+minor+".") {
		t.Errorf("archives are built with %s, go.work is\n%s", version, read("go.work"))
	}
}
