package programs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// A unit test of pv-controller checks the flags in testdata. They must be the flags of
// the real kube-controller-manager: all of the newest version, and at least those of an older
// one, so that the command line of an older one is understood too.
func TestFlagListMatchesKubeControllerManager(t *testing.T) {
	t.Parallel()
	path, err := sandbox.Binaries{Dir: filepath.Join(harness.Binaries().Dir, "upstream")}.Path("kube-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), path, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadFile(harness.InCheckout("cmd", "pv-controller", "testdata", "kube-controller-manager.flags"))
	if err != nil {
		t.Fatal(err)
	}
	if harness.IsNewest() {
		if diff := cmp.Diff(string(known), flagsIn(string(help))); diff != "" {
			t.Errorf("the flags differ from those in testdata (-known +real):\n%s", diff)
		}
		return
	}
	for flag := range strings.Lines(flagsIn(string(help))) {
		if !strings.Contains(string(known), flag) {
			t.Errorf("testdata lacks a flag of Kubernetes %s: %q", harness.KubeMinor(), flag)
		}
	}
}

// The same for csi-provisioner, whose flags have no groups.
func TestFlagListMatchesCSIProvisioner(t *testing.T) {
	t.Parallel()
	path, err := sandbox.Binaries{Dir: filepath.Join(harness.Binaries().Dir, "upstream")}.Path("csi-provisioner")
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), path, "--help").CombinedOutput()
	if len(help) == 0 {
		t.Fatalf("no help: %v", err) // some versions exit with an error after printing the help
	}
	known, err := os.ReadFile(harness.InCheckout("cmd", "provisioner", "testdata", "csi-provisioner.flags"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(known), strings.ReplaceAll("\n"+flagsIn(string(help)), "\n\t", "\n")[1:]); diff != "" {
		t.Errorf("the flags differ from those in testdata (-known +real):\n%s", diff)
	}
}

var (
	flagGroup    = regexp.MustCompile(`^([A-Z][\w -]*) flags:$`)
	flagStart    = regexp.MustCompile(`^ {2}(?:-\w, | {4})--([a-z0-9-]+)`)
	defaultValue = regexp.MustCompile(`\(default "?(.*?)"?\)$`)
)

// flagsIn returns a line with group, name and default for each flag in a help text.
func flagsIn(help string) string {
	var flags [][3]string
	group := ""
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n ")
		if heading := flagGroup.FindStringSubmatch(line); heading != nil {
			group = strings.ToLower(heading[1])
			continue
		}
		if start := flagStart.FindStringSubmatch(line); start != nil {
			flags = append(flags, [3]string{group, start[1], ""})
		}
		if value := defaultValue.FindStringSubmatch(line); value != nil && len(flags) > 0 {
			flags[len(flags)-1][2] = value[1]
		}
	}
	var list strings.Builder
	for _, flag := range flags {
		list.WriteString(strings.Join(flag[:], "\t") + "\n")
	}
	return list.String()
}

func TestVersionFlagMatchesKubernetes(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"pv-controller", "provisioner"} {
		for flag, want := range map[string]string{"--version": program + " version v", "--version=raw": "GitVersion:"} {
			path, err := harness.Binaries().Path(program)
			if err != nil {
				t.Fatal(err)
			}
			output, err := exec.CommandContext(t.Context(), path, flag).Output()
			if err != nil || !strings.Contains(string(output), want) {
				t.Errorf("%s %s: %v, printed %q, want %q in it", program, flag, err, output, want)
			}
		}
	}
}

// expectJSON checks that every line of the log is a JSON object with time and message.
func expectJSON(s *harness.Session, process *sandbox.Process) {
	s.T.Helper()
	text, err := os.ReadFile(process.LogFile())
	s.Must(err, "read log")
	lines := 0
	for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); lines++ {
		var line struct {
			Time    float64 `json:"ts"`
			Message string  `json:"msg"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil || line.Message == "" || line.Time == 0 {
			s.T.Errorf("%s: the log line is not JSON with time and message: %s", process.Name(), scanner.Text())
		}
	}
	if lines == 0 {
		s.T.Errorf("%s: the log is empty", process.Name())
	}
}
