package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// billOfMaterials returns the modules that a program was built from, as the program itself says,
// in the format of CycloneDX.
func (r release) billOfMaterials(name string, program []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("read the modules of %s: %w", name, err)
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{
		Timestamp: r.date.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: name, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: r.version,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		},
	}
	components := []cyclonedx.Component{module("std", info.GoVersion, "")}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		components = append(components, module(dependency.Path, dependency.Version, dependency.Sum))
	}
	bill.Components = &components
	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		return nil, fmt.Errorf("write the modules of %s: %w", name, err)
	}
	return text.Bytes(), nil
}

// module is a Go module of a program. The sum is that of go.sum.
func module(path, version, sum string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	component := cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version,
		PackageURL: url}
	if sum != "" {
		component.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: sum}}
	}
	return component
}
