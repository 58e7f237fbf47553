package integration

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/secretbox"
)

// #33: /scale cannot touch finalizers.
func TestScaleKeepsDeadline(t *testing.T) {
	k := newKindWith(t, ours(t), "scale.example.com", `"versions":[`+scalable+`]`)
	k.create("a", finalizer)
	k.patch("a", `{"spec":{"replicas":1}}`)
	_, found := k.graceful("a", 300)
	scale := k.path("a") + "/scale"
	patch := `{"spec":{"replicas":2},"metadata":{"finalizers":null}}`
	if got := k.s.do(t, http.MethodPatch, scale, asMerge, patch); got.code != http.StatusOK {
		t.Errorf("%d %s", got.code, got.text)
	}
	k.expect(k.get("a"), "a", found)
	object := k.s.do(t, http.MethodGet, scale, asJSON, nil).body
	object.Object["spec"] = map[string]any{"replicas": 3}
	if got := k.s.do(t, http.MethodPut, scale, asJSON, object.Object); got.code != http.StatusOK {
		t.Errorf("%d %s", got.code, got.text)
	}
	got := k.get("a")
	k.expect(got, "a", found)
	if spec := fmt.Sprint(got.body.Object["spec"]); spec != "map[replicas:3]" {
		t.Errorf("spec %s", spec)
	}
}

// A program that applies its object does not name the window, and does not remove it.
func TestApplyKeepsDeadline(t *testing.T) {
	k := newKind(t, ours(t), "applied.example.com")
	apply := func(labels string) answer {
		return k.s.do(t, http.MethodPatch, k.path("a")+"?fieldManager=test&force=true", asApply,
			fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Machine","metadata":{"name":"a","finalizers":[%q],"labels":{%s},
				"annotations":{"n":"1"}}}`, k.group, finalizer, labels))
	}
	if got := apply(`"l":"1"`); got.code != http.StatusCreated {
		t.Fatalf("%d %s", got.code, got.text)
	}
	_, found := k.graceful("a", 300)
	k.expect(apply(`"l":"2"`), "a", found)
	_, revision := k.stored("a")
	k.expect(apply(`"l":"2"`), "a", found)
	k.unchanged("a", revision)
}

// The kind gets another storage version while objects are in their grace period: the server makes a new storage.
func TestChangeOfCRDKeepsDeadlines(t *testing.T) {
	k := newKind(t, ours(t), "changed.example.com")
	for _, name := range []string{"grace", "forced", "removed"} {
		k.create(name, finalizer)
	}
	_, found := k.graceful("grace", 300)
	k.expect(k.delete("forced", 0, nil), "forced", forced)
	k.graceful("removed", 300)
	old := strings.Replace(plainVersion, `"storage":true`, `"storage":false`, 1)
	second := strings.Replace(plainVersion, `"name":"v1"`, `"name":"v2"`, 1)
	crd := definitions + "/machines." + k.group
	patch := `{"spec":{"versions":[` + old + `,` + second + `]}}`
	if got := k.s.do(t, http.MethodPatch, crd, asMerge, patch); got.code != http.StatusOK {
		t.Fatalf("%d %s", got.code, got.text)
	}
	v2 := func(name string) string { return strings.Replace(k.path(name), "/v1/", "/v2/", 1) }
	wait(t, func() error {
		if got := k.s.do(t, http.MethodGet, v2("grace"), asJSON, nil); got.code != http.StatusOK {
			return fmt.Errorf("the new version is not served: %d %s", got.code, got.text)
		}
		return nil
	})
	k.expect(k.s.do(t, http.MethodGet, v2("forced"), asJSON, nil), "forced", forced)
	k.expect(k.s.do(t, http.MethodPatch, v2("grace"), asMerge, `{"metadata":{"labels":{"l":"1"}}}`), "grace", found)
	if got := k.inEtcd("grace").GetAPIVersion(); got != k.group+"/v2" {
		t.Errorf("in etcd %s", got)
	}
	k.graceful("grace", 60)
	if got := k.s.do(t, http.MethodPatch, v2("removed"), asMerge, withoutFinalizers); got.code != http.StatusOK {
		t.Errorf("%d %s", got.code, got.text)
	}
	k.gone("removed")
}

// encryption is the configuration of encryption at rest, with a key.
const encryption = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: ["machines.encrypted.example.com"]
  providers: [{secretbox: {keys: [{name: k, secret: %s}]}}]
`

func TestGracePeriodIsEncryptedAtRest(t *testing.T) {
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	config := fmt.Appendf(nil, encryption, base64.StdEncoding.EncodeToString(key[:]))
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := startAnother(t, "encrypted", "--extra-arg=encryption-provider-config="+file)
	k := newKind(t, s, "encrypted.example.com")
	transformer := secretbox.NewSecretboxTransformer(key)
	k.decrypt = func(key, text string) (string, error) {
		data, encrypted := strings.CutPrefix(text, "k8s:enc:secretbox:v1:k:")
		if !encrypted {
			return "", fmt.Errorf("%s is not encrypted in etcd", key)
		}
		decrypted, _, err := transformer.TransformFromStorage(context.Background(), []byte(data), value.DefaultContext(key))
		return string(decrypted), err
	}
	expectGraceUntilFinalizer(t, k)
}
