package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// answer is what the stub of a CLI does when its arguments contain the words.
type answer struct {
	words          string
	stdout, stderr string
	code           int
}

// stub puts a program on the PATH that records its calls, with its input, and answers as told.
func stub(t *testing.T, name string, answers ...answer) (calls func() string) {
	t.Helper()
	folder := t.TempDir()
	record := filepath.Join(folder, "calls")
	var text strings.Builder
	fmt.Fprintf(&text, "record='%s'\n", record)
	text.WriteString("printf '%s\\n' \"$*\" >> \"$record\"\n")
	text.WriteString("case \"$*\" in *'-f -'*) cat >> \"$record\" ;; esac\ncase \"$*\" in\n")
	for _, a := range answers {
		fmt.Fprintf(&text, "*'%s'*) printf '%%s' '%s'; printf '%%s' '%s' >&2; exit %d ;;\n",
			a.words, a.stdout, a.stderr, a.code)
	}
	fmt.Fprintf(&text, "esac\necho \"unexpected call of %s\" >&2\nexit 64\n", name)
	script(t, folder, name, text.String())
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return func() string {
		t.Helper()
		text, err := os.ReadFile(record)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(text)
	}
}

// want is how a call of a script ends: with a state, or with an error.
type want struct {
	state       State
	message     string // part of the error
	unsupported bool
	throttled   bool
}

// is returns how a call ends that answers with the state.
func is(state State) want { return want{state: state} }

// fails returns how a call ends that fails with the message.
func fails(message string) want { return want{message: message} }

// refuses returns how a call ends that is unsupported.
func refuses(message string) want { return want{message: message, unsupported: true} }

// call runs a script as instances-command does.
func call(t *testing.T, name, verb string, i Instance, want want) {
	t.Helper()
	provider := &commands{get: []string{"scripts/" + name, verb}, logger: log.New(io.Discard, "", 0)}
	state, err := provider.Get(t.Context(), i)
	var said *Error
	switch {
	case want.state != "":
		if state != want.state || err != nil {
			t.Errorf("%s answers %q, %v, want %s", verb, state, err, want.state)
		}
	case !errors.As(err, &said) || !strings.Contains(said.Message, want.message) ||
		said.Unsupported != want.unsupported || (said.RetryAfter == 5*time.Second) != want.throttled:
		t.Errorf("%s answers %q, %#v, want %+v", verb, state, err, want)
	}
}

func TestScriptsAreShell(t *testing.T) {
	scripts, err := filepath.Glob("scripts/*")
	if err != nil || len(scripts) != 3 {
		t.Fatalf("the scripts are %q, %v", scripts, err)
	}
	for _, name := range scripts {
		if output, err := exec.CommandContext(t.Context(), "sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", name, err, output)
		}
	}
}

func TestScriptsNameWhatIsNotSet(t *testing.T) {
	call(t, "aws-autoscaling.sh", "stop", machine, fails("EXEUNT_CLUSTER"))
	call(t, "ipmi.sh", "stop", machine, fails("/etc/exeunt/bmc"))
	call(t, "cluster-api.sh", "stop", machine, fails("EXEUNT_MANAGEMENT_KUBECONFIG"))
}
