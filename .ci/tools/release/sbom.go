package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/lullgo/lull/internal/must"
)

// bom returns what built programs are made of, as CycloneDX 1.6 in JSON: the programs, each with the
// modules that the linker put into it, as they are recorded in it, and Go's library. It has no time,
// and its serial number depends on its content, so that the same programs have the same text.
func bom(name, version string, programs []string) []byte {
	root := component(cyclonedx.ComponentTypeApplication, name, version)
	b := cyclonedx.NewBOM()
	b.Metadata = &cyclonedx.Metadata{Component: &root}
	parts := map[string]cyclonedx.Component{} // by reference
	depend := map[string][]string{}
	for _, file := range programs {
		data := must.Have(os.ReadFile(file))
		info := must.Have(buildinfo.ReadFile(file))
		program := component(cyclonedx.ComponentTypeApplication, info.Path, info.Main.Version)
		program.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(data))}}
		properties := []cyclonedx.Property{{Name: "file", Value: filepath.Base(file)}}
		for _, s := range info.Settings {
			if s.Value != "" {
				properties = append(properties, cyclonedx.Property{Name: "build:" + s.Key, Value: s.Value})
			}
		}
		program.Properties = &properties
		parts[program.BOMRef] = program
		depend[root.BOMRef] = append(depend[root.BOMRef], program.BOMRef)

		std := component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))
		libraries := []cyclonedx.Component{std}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			c := component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version)
			c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.Sum}}
			libraries = append(libraries, c)
		}
		for _, c := range libraries {
			parts[c.BOMRef] = c
			depend[program.BOMRef] = append(depend[program.BOMRef], c.BOMRef)
		}
	}
	components := slices.SortedFunc(maps.Values(parts), func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	b.Components = &components
	dependencies := []cyclonedx.Dependency{}
	for _, c := range append([]cyclonedx.Component{root}, components...) {
		on := slices.Compact(slices.Sorted(slices.Values(depend[c.BOMRef])))
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: c.BOMRef, Dependencies: &on})
	}
	b.Dependencies = &dependencies

	h := sha256.Sum256(encoded(b))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8 of RFC 9562: any content
	b.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
	return encoded(b)
}

// component returns a part whose reference is its package URL. Each program is a module of its own.
func component(kind cyclonedx.ComponentType, name, version string) cyclonedx.Component {
	purl := "pkg:golang/" + name + "@" + version
	return cyclonedx.Component{BOMRef: purl, Type: kind, Name: name, Version: version, PackageURL: purl}
}

func encoded(b *cyclonedx.BOM) []byte {
	var text bytes.Buffer
	must.Succeed(cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(b, cyclonedx.SpecVersion1_6))
	return text.Bytes()
}
