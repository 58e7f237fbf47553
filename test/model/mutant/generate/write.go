package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// extras are files that the mutated files need, if their packages are mutated.
var extras = map[string]string{
	"pkg/patch/mutants.go": `package patch

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

func (p *Patch) TestUnless(off bool, path string, value any) *Patch {
	if off {
		return p
	}
	return p.Test(path, value)
}

func ForUnless(off bool, object metav1.Object) *Patch {
	if off {
		return new(Patch)
	}
	return For(object)
}

func ForVersionUnless(off bool, object metav1.Object) *Patch {
	if off {
		return For(object)
	}
	return ForVersion(object)
}
`,
	"pkg/controller/mutants.go": `package controller

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"MODULE/pkg/patch"
)

func RequirePhaseUnless(off bool, change *patch.Patch, volume *v1.PersistentVolume) *patch.Patch {
	if off {
		return change
	}
	return RequirePhase(change, volume)
}

func LiveVolumeUnless(off bool, ctx context.Context, client kubernetes.Interface, cached *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if off {
		return cached, nil
	}
	return LiveVolume(ctx, client, cached)
}

func LiveClaimUnless(off bool, ctx context.Context, client kubernetes.Interface, volume *v1.PersistentVolume) (*v1.PersistentVolumeClaim, error) {
	if off {
		return nil, nil
	}
	return LiveClaim(ctx, client, volume)
}
`,
}

// registry is the file of package mutant that lists the mutants. The environment selects one
// when a test binary starts, and names a file for the IDs that are reached.
const registry = `package mutant

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

func init() {
	all = listed
	active, _ = strconv.Atoi(os.Getenv("EXEUNT_MUTANT"))
	name := os.Getenv("EXEUNT_MUTANTS_REACHED")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	reached := make([]atomic.Bool, len(all)+1)
	record = func(id int, _ bool) {
		if !reached[id].Load() && !reached[id].Swap(true) {
			fmt.Fprintln(file, id)
		}
	}
}

var listed = []Mutant{
`

// write writes the mutated files, and overlay.json, which names them. Their names do not end
// in .go, so that the go command finds no packages in the folder.
func (r *result) write(root, module, out string) error {
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("remove the old mutants: %w", err)
	}
	files := map[string][]byte{mutantPath + "/listed.go": []byte(r.registry())}
	for path, text := range extras {
		if slices.Contains(r.folders, filepath.Dir(path)) {
			files[path] = []byte(strings.ReplaceAll(text, "MODULE", r.module))
		}
	}
	for path, text := range r.files {
		files[filepath.Join(module, path)] = text
	}
	if module != "" { // the module does not require this one: it gets a copy of package mutant
		if err := copyMutantPackage(root, module, files); err != nil {
			return err
		}
	}
	replace := map[string]string{}
	for path, text := range files {
		copied := filepath.Join(out, path+".txt")
		replace[filepath.Join(root, path)] = copied
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return fmt.Errorf("create a folder for mutants: %w", err)
		}
		if err := os.WriteFile(copied, text, 0o644); err != nil {
			return fmt.Errorf("write a mutated file: %w", err)
		}
	}
	overlay, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the overlay: %w", err)
	}
	if err := os.WriteFile(filepath.Join(out, "overlay.json"), overlay, 0o644); err != nil {
		return fmt.Errorf("write the overlay: %w", err)
	}
	return nil
}

// copyMutantPackage adds the files of package mutant to those of another module.
func copyMutantPackage(root, module string, files map[string][]byte) error {
	for _, name := range []string{"mutant.go", "equivalent.go"} {
		text, err := os.ReadFile(filepath.Join(root, mutantPath, name))
		if err != nil {
			return fmt.Errorf("read package mutant: %w", err)
		}
		files[filepath.Join(module, mutantPath, name)] = text
	}
	files[filepath.Join(module, mutantPath, "listed.go")] = files[mutantPath+"/listed.go"]
	return nil
}

func (r *result) registry() string {
	var text strings.Builder
	text.WriteString(registry)
	for _, m := range r.mutants {
		fmt.Fprintf(&text, "\t{%d, %q, %q, %d, %q, %q, %q, %q},\n", m.ID, m.Name, m.File, m.Line, m.Func, m.Operator, m.Original, m.Changed)
	}
	text.WriteString("}\n")
	return text.String()
}
