package harness

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// newest is the newest version of Kubernetes that the tests run on.
const newest = "1.36"

// KubeMinor returns the minor version of Kubernetes under test, such as 1.36: that of
// EXEUNT_KUBE, else the newest.
func KubeMinor() string {
	if kube := os.Getenv("EXEUNT_KUBE"); kube != "" {
		parsed := version.MustParseGeneric(kube)
		return fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor())
	}
	return newest
}

// IsNewest reports whether the version under test is the newest.
func IsNewest() bool { return KubeMinor() == newest }

// CheckVersion returns an error if the API server is not of the version that EXEUNT_KUBE names.
func CheckVersion(plane *sandbox.ControlPlane) error {
	want := os.Getenv("EXEUNT_KUBE")
	if want == "" {
		return nil
	}
	info, err := plane.Client().Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("read version of the API server: %w", err)
	}
	if info.GitVersion != want {
		return fmt.Errorf("the API server is %s, want %s, which EXEUNT_KUBE names", info.GitVersion, want)
	}
	return nil
}

// ServesAdmissionPolicy reports whether this version of Kubernetes serves the
// MutatingAdmissionPolicy of deploy/admission. Versions before 1.36 do not.
func ServesAdmissionPolicy() bool { return KubeMinor() != "1.34" && KubeMinor() != "1.35" }

// ApplyAdmission applies the admission policy. Where the API server does not serve it, the
// policy must be refused and the list of drivers must be harmless: then the result is false,
// and the test has to check what happens without the policy.
func (s *Session) ApplyAdmission() bool {
	s.T.Helper()
	err := sandbox.Apply(s.Ctx, s.Plane.RESTConfig(), deploy.Admission)
	if ServesAdmissionPolicy() {
		s.Must(err, "apply the admission policy")
		return true
	}
	if unserved := new(meta.NoKindMatchError); !errors.As(err, &unserved) {
		s.T.Fatalf("apply the admission policy on Kubernetes %s: %v, want no match for its kind", KubeMinor(), err)
	}
	s.LackAdmissionPolicy()
	return false
}

// MoveDriverList puts the list of drivers of the admission policy into the namespace, as a release of the
// chart in that namespace does.
func (s *Session) MoveDriverList(namespace string) {
	s.T.Helper()
	lists := s.Client.CoreV1().ConfigMaps
	list, err := lists(deploy.Namespace).Get(s.Ctx, deploy.Drivers, metav1.GetOptions{})
	s.Must(err, "get the list of drivers")
	moved := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: deploy.Drivers}, Data: list.Data}
	_, err = lists(namespace).Create(s.Ctx, moved, metav1.CreateOptions{})
	s.Must(err, "create the list of drivers")
	body := []byte(`{"spec":{"paramRef":{"namespace":"` + namespace + `"}}}`)
	_, err = s.Client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().
		Patch(s.Ctx, deploy.Policy, types.MergePatchType, body, metav1.PatchOptions{})
	s.Must(err, "patch the binding of the admission policy")
	s.Must(lists(deploy.Namespace).Delete(s.Ctx, deploy.Drivers, metav1.DeleteOptions{}), "delete the list of drivers")
}

// LackAdmissionPolicy records that the test checks what happens without the admission policy.
func (s *Session) LackAdmissionPolicy() {
	Lack(s.T, "the admission policy")
}

// Lack records what the version of Kubernetes lacks, for the table in docs/versions.md.
func Lack(t testing.TB, what string) {
	t.Helper()
	t.Attr("unavailable", strings.TrimSpace(what))
}
