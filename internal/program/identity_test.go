package program

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIdentityIsPodNameAndSuffix(t *testing.T) {
	encoded := func(payload string) string {
		return "head." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".signature"
	}
	for name, tc := range map[string]struct {
		token string
		pod   string // "" for none
	}{
		"bound to a pod":  {encoded(`{"iss":"i","kubernetes.io":{"namespace":"n","pod":{"name":"controller-5f-x","uid":"u"}}}`), "controller-5f-x_exeunt"},
		"bound to no pod": {encoded(`{"kubernetes.io":{"namespace":"n"}}`), ""},
		"without claims":  {encoded(`"text"`), ""},
		"no token":        {"not a token", ""},
		"not encoded":     {"head.???.signature", ""},
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
				t.Errorf("identity = %q, want %q", got, tc.pod)
			}
			if again, _ := identity(file); tc.pod == "" && (!strings.HasSuffix(got, "_exeunt") || got == again) {
				t.Errorf("two processes have the identities %q and %q, want different ones that end with the suffix", got, again)
			}
		})
	}
}
