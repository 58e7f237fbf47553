package controller

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func encodedToken(payload string) string {
	return "head." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".signature"
}

// tokenOf returns the token of a pod.
func tokenOf(name, uid string) string {
	return encodedToken(`{"iss":"i","kubernetes.io":{"namespace":"n","pod":{"name":"` + name + `","uid":"` + uid + `"}}}`)
}

// identityWith returns the identity of a process with the token.
func identityWith(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := identity(file)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestIdentityIsPodNameUIDAndSuffix(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		token, variable string
		want            string // without the random UID, if any
		random          bool
	}{
		"bound to a pod":                 {tokenOf("controller-5f-x", "u"), "", "controller-5f-x_u_exeunt", false},
		"bound to a pod, and a variable": {tokenOf("controller-5f-x", "u"), "v", "controller-5f-x_u_exeunt", false},
		"bound to no pod":                {encodedToken(`{"kubernetes.io":{"namespace":"n"}}`), "", host, true},
		"bound to no pod, a variable":    {encodedToken(`{"kubernetes.io":{"namespace":"n"}}`), "v", host + "_v_exeunt", false},
		"a pod without a UID":            {encodedToken(`{"kubernetes.io":{"pod":{"name":"p"}}}`), "", "p", true},
		"without claims":                 {encodedToken(`"text"`), "", host, true},
		"no token":                       {"not a token", "", host, true},
		"not encoded":                    {"head.???.signature", "", host, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(podUIDVariable, tc.variable)
			got, again := identityWith(t, tc.token), identityWith(t, tc.token)
			if !tc.random && (got != tc.want || again != tc.want) {
				t.Errorf("identities %q and, after a restart, %q, want %q", got, again, tc.want)
			}
			if tc.random && (got == again || !strings.HasPrefix(got, tc.want+"_") || !strings.HasSuffix(got, "_exeunt")) {
				t.Errorf("two processes have the identities %q and %q, want different ones that begin with %q and end with the suffix", got, again, tc.want)
			}
		})
	}
}

func TestNodeName(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	onNode := encodedToken(`{"kubernetes.io":{"pod":{"name":"p"},"node":{"name":"Node-B"}}}`)
	for name, tc := range map[string]struct{ token, node, service, want string }{
		"a token names the node":         {onNode, "", "10.0.0.1", "node-b"},
		"a variable names the node":      {onNode, "node-c", "10.0.0.1", "node-c"},
		"a pod of which nothing tells":   {tokenOf("p", "u"), "", "10.0.0.1", ""},
		"a process outside of a pod":     {"", "", "", strings.ToLower(host)},
		"a pod with an unreadable token": {"not a token", "", "10.0.0.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(nodeVariable, tc.node)
			t.Setenv(serviceVariable, tc.service)
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(tc.token), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := nodeName(file); got != tc.want {
				t.Errorf("nodeName = %q, want %q", got, tc.want)
			}
		})
	}
}
