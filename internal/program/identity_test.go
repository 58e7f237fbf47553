package program

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheHolderOfALeaseIsCalledAsThePodThatItsTokenNames(t *testing.T) {
	encoded := func(payload string) string {
		return "head." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".signature"
	}
	for name, tc := range map[string]struct {
		token string
		pod   string // "" for none
	}{
		"bound to a pod":          {encoded(`{"iss":"i","kubernetes.io":{"namespace":"n","pod":{"name":"controller-5f-x","uid":"u"}}}`), "controller-5f-x"},
		"bound to no pod":         {encoded(`{"kubernetes.io":{"namespace":"n"}}`), ""},
		"of somebody else's make": {encoded(`"text"`), ""},
		"no token":                {"nothing of the kind", ""},
		"not encoded":             {"head.???.signature", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(tc.token), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := identity(file)
			if err != nil {
				t.Fatal(err)
			}
			if tc.pod != "" && got != tc.pod {
				t.Errorf("it is called %q, want %q", got, tc.pod)
			}
			if again, _ := identity(file); tc.pod == "" && (!strings.Contains(got, "_") || got == again) {
				t.Errorf("two processes are called %q and %q, want names of their own", got, again)
			}
		})
	}
}
