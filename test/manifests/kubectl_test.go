package manifests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// asKubectl is the environment variable that makes the test binary run as kubectl.
const asKubectl = "EXEUNT_TEST_AS_KUBECTL"

// runKubectl is the main function of kubectl.
func runKubectl() {
	if err := kubectlcmd.NewDefaultKubectlCommand().Execute(); err != nil {
		cmdutil.CheckErr(err)
	}
}

// kubectl runs a command line in the root of the clone, against the server, and returns its output, and an error if
// the exit code is not 0.
func (s *server) kubectl(t *testing.T, line string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, wordsOf(t, line)[1:]...)
	command.Dir = filepath.Join("..", "..")
	command.Env = []string{asKubectl + "=1", "KUBECONFIG=" + s.kubeconfig, "HOME=" + s.home, "PATH=" + s.plugins(t)}
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("%s: %w: %s", line, err, output)
	}
	return string(output), nil
}

// plugins returns a directory with exeunt as a kubectl plugin.
func (s *server) plugins(t *testing.T) string {
	t.Helper()
	program, err := binaries().Path("exeunt")
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err == nil {
		err = os.Symlink(program, filepath.Join(s.home, "kubectl-exeunt"))
	}
	if err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return s.home
}

// wordsOf splits a command line up to a pipe, and handles shell quotes.
func wordsOf(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	finish := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == '|':
			finish()
			return words
		case r == ' ':
			finish()
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		t.Errorf("a quote is left open in %s", line)
	}
	finish()
	return words
}
