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

// Page is a next step as a command prints it. Where names the command and its flags, for error messages.
type Page struct {
	Where string
	Lines []string
}

// ExpectSafe pastes a next step into a shell: as it is, as the pages print it, and each of these without the "# " of
// its comments, as a user does who has read them. It is an error if
//
//   - a shell does not read each line by itself;
//   - a page runs other commands than the step;
//   - a command that loses something is no comment;
//   - without "# ", such a command runs although the command before it failed.
func ExpectSafe(t testing.TB, next string, pages ...Page) {
	t.Helper()
	expectComments(t, next)
	step := strings.Split(next, "\n")
	pages = append(pages, Page{"as it is", step})
	var commented, bare [][]string
	for _, page := range pages {
		commented, bare = append(commented, page.Lines), append(bare, uncommented(page.Lines))
	}
	expectCommands(t, pages, commented, commandsOf(step))
	expectCommands(t, pages, bare, commandsOf(uncommented(step)))
}

// expectCommands wants that each paste, one for each page, runs the commands, and that none deletes a volume whose
// policy could not be set to Retain.
func expectCommands(t testing.TB, pages []Page, pastes [][]string, commands []string) {
	t.Helper()
	done := run(t, append(slices.Clone(pastes), commands), 0) // the last one is what is wanted
	failed := run(t, pastes, 1)
	for i, lines := range pastes {
		if i >= len(done)-1 || i >= len(failed) {
			return // run has said why
		}
		want, got := done[len(done)-1], done[i]
		if got != want {
			t.Errorf("%s: the lines %q run\n%swant\n%s", pages[i].Where, lines, got, want)
		}
		if strings.Contains(got, "Retain") && strings.Contains(failed[i], "[delete]") {
			t.Errorf("%s: the lines %q delete a volume whose policy was not set:\n%s", pages[i].Where, lines, failed[i])
		}
	}
}

func commandsOf(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !isCommand(line) })
}

// expectComments wants that each command which loses something is a comment. Comments are sentences and commands; of
// several commands after one sentence a shell would run the second one although the first one failed.
func expectComments(t testing.TB, next string) {
	t.Helper()
	commands := 0 // those since the last sentence
	for line := range strings.SplitSeq(next, "\n") {
		text, isComment := strings.CutPrefix(line, "# ")
		switch {
		case !isCommand(text) && !isComment:
			t.Errorf("the line %q of the next step %q is neither a command nor a comment", line, next)
		case !isCommand(text):
			commands = 0
		case !isComment && LosesSomething(text):
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

// LosesSomething reports whether the command deletes an object or a finalizer, or moves pods. exeunt does with --confirm.
func LosesSomething(command string) bool {
	_, arguments, isKubectl := strings.Cut(" "+command, " kubectl ")
	words := append([]string{"kubectl"}, strings.Fields(arguments)...)
	if len(words) > 1 && words[1] == "exeunt" {
		words = words[1:]
	}
	return slices.ContainsFunc([]string{"delete", "replace", "taint", "drain", "cordon"},
		func(verb string) bool { return len(words) > 1 && words[1] == verb }) ||
		isKubectl && strings.Contains(command, `"op":"remove"`) || strings.Contains(command, "--replicas=0") ||
		strings.Contains(command, "| kubectl") || strings.Contains(command, " --confirm")
}

func uncommented(lines []string) []string {
	bare := make([]string, len(lines))
	for i, line := range lines {
		bare[i] = strings.TrimPrefix(line, "# ")
	}
	return bare
}

// between separates pastes in the input of the shell, and their commands in its output.
const between = "\x01"

// shell runs each line of its input by itself, as a terminal does. kubectl prints its arguments and
// returns $1; there are no other programs.
const shell = `code=$1; between=$2; PATH=; mapfile -t lines; exec </dev/null
kubectl() { printf '[%s]' kubectl "$@"; echo; return "$code"; }
exeunt() { printf '[%s]' exeunt "$@"; echo; return "$code"; }
command_not_found_handle() { return 127; }
for line in "${lines[@]}"; do
	if [ "$line" = "$between" ]; then echo "$between"; else eval "$line"; fi
done
echo "$between"`

// run returns the commands that each paste runs, sorted: those of a pipe run at the same time.
func run(t testing.TB, pastes [][]string, code int) []string {
	t.Helper()
	var input []string
	for i, lines := range pastes {
		if i > 0 {
			input = append(input, between)
		}
		input = append(input, lines...)
	}
	command := exec.CommandContext(t.Context(), "bash", "--norc", "-c", shell, "bash", fmt.Sprint(code), between)
	var out, diagnostics bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(strings.Join(input, "\n")+"\n"), &out, &diagnostics
	err := command.Run()
	all := strings.SplitAfter(out.String(), between+"\n")
	all = all[:len(all)-1]
	if err != nil || len(all) != len(pastes) || strings.Contains(diagnostics.String(), "syntax error") ||
		strings.Contains(diagnostics.String(), "unexpected EOF") {
		t.Errorf("a shell refuses the lines %q: %v: %s", pastes, err, diagnostics.String())
		return nil
	}
	for i, text := range all {
		all[i] = strings.Join(slices.Sorted(strings.Lines(strings.TrimSuffix(text, between+"\n"))), "")
	}
	return all
}
