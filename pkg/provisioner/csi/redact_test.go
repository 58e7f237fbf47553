package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWhatADriverSaysOfASecretIsHidden(t *testing.T) {
	secrets := map[string]string{"password": "hunter2\n", "empty": "", "port": "80"}
	err := redact(status.Error(codes.Unauthenticated, "login with hunter2 at port 80 refused"), secrets)
	if status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "port 80") {
		t.Errorf("redact = %v", err)
	}
	plain := errors.New("not of gRPC")
	if got := redact(plain, secrets); !errors.Is(got, plain) || redact(nil, secrets) != nil {
		t.Errorf("redact = %v, want the error itself", got)
	}
}

func TestNothingIsLeftOfAValueHoweverItIsWritten(t *testing.T) {
	odd := "<p&\"w>\n\\end\x01\u00e9"
	marshalled, err := json.Marshal(odd)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		text    string
		secrets map[string]string
		want    string
	}{
		"one that begins another":  {"admin-S3cr3t of admin", map[string]string{"user": "admin", "key": "admin-S3cr3t"}, "*** of ***"},
		"one that ends another":    {"root-admin of admin", map[string]string{"user": "admin", "key": "root-admin"}, "*** of ***"},
		"two that overlap":         {"say abcd12xyz", map[string]string{"a": "abcd12", "b": "12xyz"}, "say ***"},
		"one that overlaps itself": {"say ababab.", map[string]string{"a": "abab"}, "say ***."},
		"the same twice":           {"abcd, abcd", map[string]string{"a": "abcd"}, "***, ***"},
		"a word of the mark":       {"stripped, abcd", map[string]string{"a": "stripped", "b": "abcd"}, "***, ***"},
		"in JSON":                  {`{"k":` + string(marshalled) + `}`, map[string]string{"a": odd}, `{"k":"***"}`},
		"in JSON for no page":      {`{"k":"<p&\"w>\n\\end\u0001é"}`, map[string]string{"a": odd}, `{"k":"***"}`},
		"in quotes":                {fmt.Sprintf("map[k:%q]", odd), map[string]string{"a": odd}, `map[k:"***"]`},
		"as it is":                 {"k=" + odd + ".", map[string]string{"a": odd}, "k=***."},
		"too short to be found":    {"abc", map[string]string{"a": "abc"}, "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.ReplaceAll(tc.want, "***", "***stripped***")
			if got := Hide(tc.text, tc.secrets); got != want {
				t.Errorf("Hide(%q) = %q, want %q", tc.text, got, want)
			}
		})
	}
}
