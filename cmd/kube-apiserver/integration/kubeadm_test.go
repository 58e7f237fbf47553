package integration

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// etcdKeys are the flags for TLS to etcd, which that of the tests has not.
var etcdKeys = regexp.MustCompile(`^--etcd-(cafile|certfile|keyfile)=`)

// The program takes the place of upstream's in the static pod that kubeadm writes: the pod calls it by its name.
func TestProgramStartsWithFlagsOfKubeadm(t *testing.T) {
	pki := keysOfKubeadm(t)
	port, listener := freePort(t)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	args := commandOfKubeadm(t, pki, port)
	t.Setenv("PATH", binaries()+string(filepath.ListSeparator)+os.Getenv("PATH"))
	command := exec.CommandContext(t.Context(), args[0], args[1:]...)
	command.Err = nil // EXEUNT_BIN may be a relative folder
	var log strings.Builder
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Wait() // the context of the test has ended, and the program with it
		if t.Failed() {
			t.Log(log.String())
		}
	})
	trusted := x509.NewCertPool()
	if authority, err := os.ReadFile(filepath.Join(pki, "apiserver.crt")); err != nil || !trusted.AppendCertsFromPEM(authority) {
		t.Fatal(err)
	}
	anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	wait(t, func() error {
		response, err := anonymous.Get(fmt.Sprintf("https://127.0.0.1:%d/version", port))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err == nil && !strings.Contains(string(text), "+exeunt.") {
			err = fmt.Errorf("%s %s", response.Status, text)
		}
		return err
	})
}

// commandOfKubeadm returns the command of the manifest, with the keys, the port and the etcd of the test.
func commandOfKubeadm(t *testing.T, pki string, port int) []string {
	t.Helper()
	manifest, err := os.ReadFile("testdata/kube-apiserver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("192.0.2.1", "127.0.0.1", "/etc/kubernetes/pki", pki, "6443", fmt.Sprint(port),
		"https://127.0.0.1:2379", shared.endpoint)
	var args []string
	for _, found := range regexp.MustCompile(`(?m)^    - (\S+)$`).FindAllStringSubmatch(string(manifest), -1) {
		if arg := here.Replace(found[1]); !etcdKeys.MatchString(arg) {
			args = append(args, arg)
		}
	}
	return args
}

// keysOfKubeadm makes the files of /etc/kubernetes/pki.
func keysOfKubeadm(t *testing.T) string {
	t.Helper()
	pki := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	account, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"sa.key": account, "sa.pub": account}
	for _, name := range []string{"ca", "etcd/ca", "front-proxy-ca", "apiserver", "apiserver-etcd-client",
		"apiserver-kubelet-client", "front-proxy-client"} {
		files[name+".crt"], files[name+".key"] = certificate, key
	}
	if err := os.Mkdir(filepath.Join(pki, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(pki, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pki
}
