package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// tool is the program that people install on their machines, plugin the name under which
// kubectl finds it.
const (
	tool   = "exeunt"
	plugin = "kubectl-exeunt"
)

// asset is a file that people download.
type asset struct {
	platform platform
	name     string
	sum      string // SHA-256, hexadecimal
}

// writeCLI writes archives of the tool, checksums, the manifest for krew and the notes of the
// release. The arguments are the license and the changelog.
func writeCLI(r release, args []string, log io.Writer) error {
	if len(args) != 2 {
		return errors.New("cli: name the license and the changelog")
	}
	license, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read license: %w", err)
	}
	changelog, err := os.ReadFile(args[1])
	if err != nil {
		return fmt.Errorf("read changelog: %w", err)
	}
	notes, err := notesOf(string(changelog), r.version)
	if err != nil {
		return err
	}
	assets, err := r.writeArchives(license, log)
	if err != nil {
		return err
	}
	manifest, err := r.krewManifest(assets)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, a := range assets {
		fmt.Fprintf(&sums, "%s  %s\n", a.sum, a.name)
	}
	return errors.Join(
		r.write("SHA256SUMS", []byte(sums.String()), log),
		r.write(tool+".yaml", manifest, log),
		r.write("notes.md", []byte(notes), log),
	)
}

// writeArchives writes the archive of each platform: zip for Windows, tar.gz for the others.
func (r release) writeArchives(license []byte, log io.Writer) ([]asset, error) {
	var assets []asset
	for _, p := range r.platforms {
		f, err := r.readProgram(p, tool)
		if err != nil {
			return nil, err
		}
		bill, err := r.billOfMaterials(tool, f.content)
		if err != nil {
			return nil, err
		}
		f.name = p.executable(plugin)
		files := []file{f, {name: "LICENSE", mode: 0o644, content: license},
			{name: tool + ".cdx.json", mode: 0o644, content: bill}}
		pack, ending := gzipFiles, ".tar.gz"
		if p.os == "windows" {
			pack, ending = zipFiles, ".zip"
		}
		content, err := pack(files, r.date)
		if err != nil {
			return nil, err
		}
		a := asset{platform: p, name: fmt.Sprintf("%s_%s_%s_%s%s", plugin, r.version, p.os, p.arch, ending),
			sum: fmt.Sprintf("%x", sha256.Sum256(content))}
		if err := r.write(a.name, content, log); err != nil {
			return nil, err
		}
		assets = append(assets, a)
	}
	return assets, nil
}

// notesOf returns the section of a version in a changelog. A version between two releases, with
// a plus sign, has that of Unreleased.
func notesOf(changelog, version string) (string, error) {
	title := strings.TrimPrefix(version, "v")
	if strings.Contains(version, "+") {
		title = "Unreleased"
	}
	_, rest, found := strings.Cut(changelog, "\n## ["+title+"]")
	if !found {
		return "", fmt.Errorf("the changelog has no section [%s]: add one before the release", title)
	}
	_, section, _ := strings.Cut(rest, "\n") // the rest of the line is a date
	section, _, _ = strings.Cut(section, "\n## ")
	return strings.TrimSpace(section) + "\n", nil
}

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
	p.Spec = krewSpec{Version: r.version, Homepage: r.source,
		ShortDescription: "Explain why a deleted object is still there", Description: description}
	for _, a := range assets {
		platform := krewPlatform{URI: fmt.Sprintf("%s/releases/download/%s/%s", r.source, r.version, a.name), SHA256: a.sum,
			Bin: a.platform.executable(plugin)}
		platform.Selector.MatchLabels = map[string]string{"os": a.platform.os, "arch": a.platform.arch}
		p.Spec.Platforms = append(p.Spec.Platforms, platform)
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the manifest for krew: %w", err)
	}
	return text, nil
}
