// Package paste pastes next steps into a shell, as users do.
package paste

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// ExpectSafe pastes a next step, also without "# ", and wants that a shell reads each line by itself, that no
// command without "# " loses something, and that none that does runs after a command that failed.
func ExpectSafe(t *testing.T, next string) {
	t.Helper()
	expectComments(t, next)
	ExpectPrinted(t, strings.Split(next, "\n"), next, "as it is")
}

// ExpectPrinted wants that the lines, as a page prints them, run the commands of the next step.
func ExpectPrinted(t *testing.T, lines []string, next, where string) {
	t.Helper()
	whole := strings.Split(next, "\n")
	expectPaste(t, lines, whole, where)
	expectPaste(t, uncommented(lines), uncommented(whole), where+", without \"# \"")
}

// expectComments wants that commands which lose something are comments, one line of each sentence.
func expectComments(t *testing.T, next string) {
	t.Helper()
	commands := 0
	for line := range strings.SplitSeq(next, "\n") {
		text, isComment := strings.CutPrefix(line, "# ")
		switch {
		case !isCommand(text) && !isComment:
			t.Errorf("the line %q of the next step %q is neither a command nor a comment", line, next)
		case !isCommand(text):
			commands = 0
		case !isComment && losesSomething(text):
			t.Errorf("the next step %q loses something if it is pasted: %q", next, line)
		case isComment:
			commands++
		}
		if commands > 1 {
			t.Errorf("%q runs also if the command before it failed, in %q", line, next)
		}
	}
}

// isCommand reports whether the line begins with a program that advice runs.
func isCommand(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return word == "kubectl" || word == "exeunt" || word == "echo"
}

// losesSomething reports whether the command deletes an object or a finalizer, or moves pods.
func losesSomething(command string) bool {
	words := strings.Fields(command)
	if len(words) > 1 && words[1] == "exeunt" {
		words = words[1:]
	}
	return slices.ContainsFunc([]string{"delete", "replace", "taint", "drain", "cordon"}, func(verb string) bool { return len(words) > 1 && words[1] == verb }) ||
		strings.Contains(command, `"op":"remove"`) || strings.Contains(command, "--replicas=0") || strings.Contains(command, "| kubectl")
}

func uncommented(lines []string) []string {
	bare := make([]string, len(lines))
	for i, line := range lines {
		bare[i] = strings.TrimPrefix(line, "# ")
	}
	return bare
}

// expectPaste wants that the printed lines run the same commands as the whole lines.
func expectPaste(t *testing.T, lines, whole []string, where string) {
	t.Helper()
	commands := slices.DeleteFunc(slices.Clone(whole), func(line string) bool { return !isCommand(line) })
	want, got := paste(t, commands, 0), paste(t, lines, 0)
	if got != want {
		t.Errorf("%s, the lines %q run\n%swant\n%s", where, lines, got, want)
	}
	failed := paste(t, lines, 1)
	if strings.Contains(got, "Retain") && strings.Contains(failed, "[delete]") {
		t.Errorf("%s, the lines %q delete a volume whose policy was not set:\n%s", where, lines, failed)
	}
}

// shell runs each line of its input by itself, as a terminal does. kubectl prints its arguments and
// returns $1; there are no other programs.
const shell = `code=$1; PATH=; mapfile -t lines; exec </dev/null
kubectl() { printf '[%s]' kubectl "$@"; echo; return "$code"; }
exeunt() { printf '[%s]' exeunt "$@"; echo; return "$code"; }
command_not_found_handle() { return 127; }
for line in "${lines[@]}"; do eval "$line"; done
echo end`

// paste returns the commands that the lines run, sorted.
func paste(t *testing.T, lines []string, code int) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "--norc", "-c", shell, "bash", fmt.Sprint(code))
	var out, diagnostics bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(strings.Join(lines, "\n")+"\n"), &out, &diagnostics
	err := command.Run()
	if text, ended := strings.CutSuffix(out.String(), "end\n"); err == nil && ended && !strings.Contains(diagnostics.String(), "syntax error") && !strings.Contains(diagnostics.String(), "unexpected EOF") {
		calls := slices.Sorted(strings.Lines(text))
		return strings.Join(calls, "")
	}
	t.Errorf("a shell refuses the lines %q: %v: %s", lines, err, diagnostics.String())
	return ""
}
