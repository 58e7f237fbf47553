package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownCommand is a command of ours in a code block or between backquotes.
var ownCommand = regexp.MustCompile("(?m)(?:^ *|`)((?:make|exeunt|bin/exeunt|kubectl exeunt) [^`\n]*)")

// ownCommands returns the documented commands of make or exeunt, without comments and repetitions.
func ownCommands(t *testing.T, program string) []string {
	t.Helper()
	var found []string
	for _, name := range append(slices.Clone(guides), filepath.Join("docs", "versions.md"), "CONTRIBUTING.md") {
		for _, match := range ownCommand.FindAllStringSubmatch(guide(t, name), -1) {
			line, _, _ := strings.Cut(sample.Replace(match[1]), " #")
			line, _, _ = strings.Cut(line, " | ")
			line = strings.TrimSpace(line)
			if isMake := strings.HasPrefix(line, "make "); isMake == (program == "make") && !slices.Contains(found, line) {
				found = append(found, line)
			}
		}
	}
	return found
}

// The last word makes the program print its help once it has accepted all flags.
func TestDocumentedCommandsOfExeuntAreAccepted(t *testing.T) {
	program, err := binaries().Path("exeunt")
	if err != nil {
		t.Fatal(err)
	}
	lines := ownCommands(t, "exeunt")
	for _, line := range lines {
		words := wordsOf(t, strings.TrimPrefix(line, "kubectl "))[1:]
		output, err := exec.CommandContext(t.Context(), program, append(words, "--help")...).CombinedOutput()
		if err != nil || !strings.Contains(string(output), "exeunt "+words[0]) {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
	}
	if len(lines) < 15 {
		t.Errorf("the documents have %d commands of exeunt: %q", len(lines), lines)
	}
}

// A dry run of make fails for a target that does not exist.
func TestDocumentedTargetsOfMakeExist(t *testing.T) {
	lines := ownCommands(t, "make")
	for _, line := range lines {
		command := exec.CommandContext(t.Context(), "make",
			append([]string{"--dry-run", "--directory", filepath.Join("..", "..")}, wordsOf(t, line)[1:]...)...)
		command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
			return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS")
		})
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
	}
	if len(lines) < 10 {
		t.Errorf("the documents have %d commands of make: %q", len(lines), lines)
	}
}

// elsewhere are programs of a platform, an engine or a registry, which do not run here.
var elsewhere = []string{"journalctl", "systemctl", "talosctl", "kubeadm", "aws", "gcloud", "az", "grep", "ctr", "kind",
	"skopeo", "asciinema"}

// testedElsewhere are the programs whose commands other tests run or render.
var testedElsewhere = []string{"make", "exeunt", "bin/exeunt", "kubectl", "helm", "go"}

// fencedBlock is a code block. One without a language has commands, or the output of one.
var fencedBlock = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```$")

// output begins lines in code blocks that are no commands.
var output = regexp.MustCompile(`^(-|!|\$|[A-Z]|\d|  |│|└|├|waiting|such as)`)

// TestEveryCommandHasAKnownProgram finds commands that no test reads.
func TestEveryCommandHasAKnownProgram(t *testing.T) {
	for _, name := range guides {
		for _, block := range fencedBlock.FindAllStringSubmatch(guide(t, name), -1) {
			lines := strings.Split(strings.TrimRight(block[2], "\n"), "\n")
			if block[1] != "" || output.MatchString(strings.TrimLeft(lines[0], " ")) {
				continue
			}
			word, _, _ := strings.Cut(strings.TrimSpace(lines[0]), " ")
			if !slices.Contains(elsewhere, word) && !slices.Contains(testedElsewhere, word) {
				t.Errorf("%s: no test runs or renders %q", name, lines[0])
			}
		}
	}
}
