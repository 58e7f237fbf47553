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

func TestSecretsInErrorsAreHidden(t *testing.T) {
	secrets := map[string]string{"password": "hunter2\n", "empty": "", "port": "80"}
	err := redact(status.Error(codes.Unauthenticated, "login with hunter2 at port 80 refused"), secrets)
	if status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "hunter2") ||
		!strings.Contains(err.Error(), "port 80") {
		t.Errorf("redact = %v", err)
	}
	plain := errors.New("not of gRPC")
	if got := redact(plain, secrets); !errors.Is(got, plain) || redact(nil, secrets) != nil {
		t.Errorf("redact = %v, want the error itself", got)
	}
}

func TestEverySpellingOfASecretIsHidden(t *testing.T) {
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
		"prefix of another":          {"admin-S3cr3t of admin", map[string]string{"user": "admin", "key": "admin-S3cr3t"}, "*** of ***"},
		"suffix of another":          {"root-admin of admin", map[string]string{"user": "admin", "key": "root-admin"}, "*** of ***"},
		"overlapping values":         {"say abcd12xyz", map[string]string{"a": "abcd12", "b": "12xyz"}, "say ***"},
		"value that overlaps itself": {"say ababab.", map[string]string{"a": "abab"}, "say ***."},
		"two occurrences":            {"abcd, abcd", map[string]string{"a": "abcd"}, "***, ***"},
		"part of the replacement":    {"stripped, abcd", map[string]string{"a": "stripped", "b": "abcd"}, "***, ***"},
		"JSON":                       {`{"k":` + string(marshalled) + `}`, map[string]string{"a": odd}, `{"k":"***"}`},
		"JSON without HTML escapes":  {`{"k":"<p&\"w>\n\\end\u0001é"}`, map[string]string{"a": odd}, `{"k":"***"}`},
		"Go quotes":                  {fmt.Sprintf("map[k:%q]", odd), map[string]string{"a": odd}, `map[k:"***"]`},
		"verbatim":                   {"k=" + odd + ".", map[string]string{"a": odd}, "k=***."},
		"too short":                  {"abc", map[string]string{"a": "abc"}, "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.ReplaceAll(tc.want, "***", "***stripped***")
			if got := Hide(tc.text, tc.secrets); got != want {
				t.Errorf("Hide(%q) = %q, want %q", tc.text, got, want)
			}
		})
	}
}
