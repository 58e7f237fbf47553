package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// bmc writes the files of the script, and returns the path of the password.
func bmc(t *testing.T) (password string) {
	t.Helper()
	folder := t.TempDir()
	write := func(variable, name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(variable, path)
		return path
	}
	write("EXEUNT_BMC_FILE", "bmc", "# machines\nnode-1 10.9.0.2 admin\nnode-0 10.9.0.1 admin\nnode-2 10.9.0.3\n"+
		"node-3 10.9.0.4 admin 7\nnode-4 10.9.0.5 admin")
	return write("EXEUNT_BMC_PASSWORD_FILE", "password", "secret")
}

type bmcCase struct {
	verb, node string
	status     answer
	off        answer
	want       want
	powerOff   bool
}

var on, off = answer{stdout: "Chassis Power is on"}, answer{stdout: "Chassis Power is off"}

var bmcCases = map[string]bmcCase{
	"on":              {"get", "node-0", on, answer{}, is(Running), false},
	"off":             {"get", "node-0", off, answer{}, is(Off), false},
	"last line":       {"get", "node-4", on, answer{}, is(Running), false},
	"other answer":    {"stop", "node-0", answer{stdout: "Power is unknown"}, answer{}, fails("is unknown"), false},
	"no answer":       {"get", "node-0", answer{stderr: "no session", code: 75}, answer{}, fails("no session"), false},
	"not in the file": {"stop", "node", on, answer{}, is(Foreign), false},
	"a pattern":       {"stop", "*", on, answer{}, is(Foreign), false},
	"without a user":  {"stop", "node-2", on, answer{}, fails("must be: NODE ADDRESS USER"), false},
	"too many words":  {"stop", "node-3", on, answer{}, fails("must be: NODE ADDRESS USER"), false},
	"stop":            {"stop", "node-0", on, answer{}, is(Stopping), true},
	"delete":          {"delete", "node-0", on, answer{}, is(Stopping), true},
	"stop when off":   {"stop", "node-0", off, answer{}, is(Off), false},
	"stop that fails": {"stop", "node-0", on, answer{stderr: "Control failed", code: 3}, fails("Control failed"), true},
	"unknown call":    {"start", "node-0", on, answer{}, fails("unknown call start"), false},
}

func TestMachinesWithBMC(t *testing.T) {
	password := bmc(t)
	for name, tc := range bmcCases {
		t.Run(name, func(t *testing.T) {
			tc.status.words, tc.off.words = "power status", "-H 10.9.0.1 -U admin -f "+password+" chassis power off"
			calls := stub(t, "ipmitool", tc.status, tc.off)
			call(t, "ipmi.sh", tc.verb, Instance{Node: tc.node}, tc.want)
			if strings.Contains(calls(), tc.off.words) != tc.powerOff || strings.Contains(calls(), "secret") {
				t.Errorf("want power off: %v, calls:\n%s", tc.powerOff, calls())
			}
		})
	}
}

func TestPasswordThatOthersMayReadIsRefused(t *testing.T) {
	password := bmc(t)
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o644, 0o620} {
		if err := os.Chmod(password, mode); err != nil {
			t.Fatal(err)
		}
		calls := stub(t, "ipmitool")
		call(t, "ipmi.sh", "get", machine, fails("its mode must be 0600"))
		if calls() != "" {
			t.Errorf("ipmitool was called: %s", calls())
		}
	}
	link := password + "-link"
	if err := os.Symlink(password, link); err != nil { // as in a Secret
		t.Fatal(err)
	}
	t.Setenv("EXEUNT_BMC_PASSWORD_FILE", link)
	call(t, "ipmi.sh", "get", machine, fails("its mode must be 0600"))
	if err := os.Chmod(password, 0o400); err != nil {
		t.Fatal(err)
	}
	stub(t, "ipmitool", answer{words: "power status", stdout: "Chassis Power is on"})
	call(t, "ipmi.sh", "get", Instance{Node: "node-0"}, is(Running))
}
