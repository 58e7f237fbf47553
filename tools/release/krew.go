package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// krewPlugin is the manifest of a plugin in the index of krew, v1alpha2.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec krewSpec `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

// krewPlatform says what is installed on the platform that its labels select.
type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

const description = `Explains on any cluster why a deleted object is still there, which controller holds it
and what to do next, and finds volumes in storage that no cluster knows. It needs no
controller of its own, and the commands that explain and audit write nothing.
`

// krewManifest returns the manifest of the plugin.
func (r release) krewManifest(assets []asset) ([]byte, error) {
	p := krewPlugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin"}
	p.Metadata.Name = tool
	p.Spec = krewSpec{Version: r.version, Homepage: r.source, ShortDescription: "Explain why a deleted object is still there", Description: description}
	for _, a := range assets {
		platform := krewPlatform{URI: fmt.Sprintf("%s/releases/download/%s/%s", r.source, r.version, a.name), SHA256: a.sum, Bin: a.platform.executable(plugin)}
		platform.Selector.MatchLabels = map[string]string{"os": a.platform.os, "arch": a.platform.arch}
		p.Spec.Platforms = append(p.Spec.Platforms, platform)
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the manifest for krew: %w", err)
	}
	return text, nil
}
