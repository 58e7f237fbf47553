package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
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
		files := []file{f, {name: "LICENSE", mode: 0o644, content: license}, {name: tool + ".cdx.json", mode: 0o644, content: bill}}
		pack, ending := gzipFiles, ".tar.gz"
		if p.os == "windows" {
			pack, ending = zipFiles, ".zip"
		}
		content, err := pack(files, r.date)
		if err != nil {
			return nil, err
		}
		a := asset{platform: p, name: fmt.Sprintf("%s_%s_%s_%s%s", plugin, r.version, p.os, p.arch, ending), sum: fmt.Sprintf("%x", sha256.Sum256(content))}
		if err := r.write(a.name, content, log); err != nil {
			return nil, err
		}
		assets = append(assets, a)
	}
	return assets, nil
}
