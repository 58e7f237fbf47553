package integration

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

const kubernetes = "k8s.io/kubernetes"

// linked returns the version of each module in the program.
func linked(t *testing.T) map[string]string {
	t.Helper()
	versions, err := readModules()
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

func readModules() (map[string]string, error) {
	info, err := buildinfo.ReadFile(program())
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, module := range info.Deps {
		versions[module.Path] = lastOf(module).Version
	}
	return versions, nil
}

// lastOf returns the module that replaces a module, or the module itself.
func lastOf(module *debug.Module) *debug.Module {
	if module.Replace != nil {
		return module.Replace
	}
	return module
}

// modFile returns upstream's go.mod of a version of Kubernetes.
func modFile(t *testing.T, version string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", kubernetes+"@"+version).Output()
	if err != nil {
		t.Fatal(err)
	}
	var module struct{ GoMod string }
	if err := json.Unmarshal(output, &module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(module.GoMod)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The program has the modules of upstream's, in upstream's versions. Those that upstream publishes with Kubernetes
// v1.x.y have version v0.x.y, and v0.0.0 in upstream's file.
func TestModulesHaveVersionsOfUpstream(t *testing.T) {
	found := linked(t)
	staging := strings.Replace(found[kubernetes], "v1.", "v0.", 1)
	upstream := map[string]string{kubernetes: found[kubernetes]}
	required := regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)
	for _, line := range required.FindAllStringSubmatch(modFile(t, found[kubernetes]), -1) {
		upstream[line[1]] = line[2]
		if line[2] == "v0.0.0" {
			upstream[line[1]] = staging
		}
	}
	for path, version := range found {
		if want := upstream[path]; want != version && !strings.HasPrefix(path, "github.com/exeunt-io/") {
			t.Errorf("%s has version %s, upstream's %q", path, version, want)
		}
	}
	if len(found) < 50 {
		t.Errorf("the program has %d modules only", len(found))
	}
}

// The defaults of Go's runtime are those of upstream's program.
func TestGodebugIsThatOfUpstream(t *testing.T) {
	version := linked(t)[kubernetes]
	own, err := os.ReadFile(ownModFile(version))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^godebug .*$`)
	if got, want := line.FindString(string(own)), line.FindString(modFile(t, version)); got != want || got == "" {
		t.Errorf("%q, upstream %q", got, want)
	}
}

// ownModFile returns our file for a version of Kubernetes: go.1.35.mod, or go.mod for the newest one.
func ownModFile(version string) string {
	minor := strings.Join(strings.Split(strings.TrimPrefix(version, "v"), ".")[:2], ".")
	if older := "../go." + minor + ".mod"; exists(older) {
		return older
	}
	return "../go.mod"
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
