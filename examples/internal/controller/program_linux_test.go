package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongCommandLinesAreOneSentence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"typo":               {[]string{"--kubeconfg=x"}, "flag provided but not defined: -kubeconfg, see --help"},
		"argument":           {[]string{"now"}, `unknown argument "now", see --help`},
		"no kubeconfig":      {[]string{"--kubeconfig=" + file + "x"}, "find the API server: "},
		"bad kubeconfig":     {[]string{"--kubeconfig=" + file}, "find the API server: "},
		"no service account": {nil, "find the API server: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), Kind{Program: "test", Resource: resource}, tc.args)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q, want %q", err, tc.want)
			}
		})
	}
}

func TestHelpStartsNothing(t *testing.T) {
	if _, start, err := parse(Kind{Program: "test", Resource: resource}, []string{"--help"}); start || err != nil {
		t.Errorf("started %t, %v", start, err)
	}
}
