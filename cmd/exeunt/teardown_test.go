package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// clusterID is the UID of namespace kube-system.
const clusterID = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"

// doomed is a cluster that goes away, as its API server answers.
type doomed struct {
	*httptest.Server
	objects clustertest.Objects
	// forbids reports whether the user lacks a right.
	forbids func(*authorizationv1.ResourceAttributes) bool

	mu     sync.Mutex
	writes []string
}

// newDoomed serves a cluster with a claim, until the test ends.
func newDoomed(t testing.TB, names ...string) *doomed {
	t.Helper()
	c := &doomed{forbids: func(*authorizationv1.ResourceAttributes) bool { return false }, objects: clustertest.Objects{
		"namespaces": {&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: clusterID}},
			&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}},
	}}
	for _, name := range names {
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, UID: "pv",
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}}}
		volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimDelete
		volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-" + name}
		volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: "shop", Name: name, UID: "claim"}
		volume.Status.Phase = v1.VolumeBound
		claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "claim"}}
		claim.Spec.VolumeName, claim.Status.Phase = volume.Name, v1.ClaimBound
		c.objects["persistentvolumes"] = append(c.objects["persistentvolumes"], volume)
		c.objects["persistentvolumeclaims"] = append(c.objects["persistentvolumeclaims"], claim)
	}
	c.Server = httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(c.Close)
	return c
}

func (c *doomed) answer(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(request.URL.Path, "/selfsubjectaccessreviews"):
		body, _ := io.ReadAll(request.Body)
		decoded, _, _ := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		review := decoded.(*authorizationv1.SelfSubjectAccessReview)
		review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
		review.Status.Allowed = !c.forbids(review.Spec.ResourceAttributes)
		_ = json.NewEncoder(w).Encode(review)
	case request.Method != http.MethodGet:
		c.mu.Lock()
		c.writes = append(c.writes, request.Method+" "+request.URL.Path)
		c.mu.Unlock()
		w.WriteHeader(http.StatusForbidden)
	case request.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"gitVersion": "v1.36.3"}`)
	default:
		clustertest.Discovery{Next: c.objects, Served: map[string][]metav1.APIResource{"v1": {
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: []string{"list"}}}}}.ServeHTTP(w, request)
	}
}

// teardown runs the command, which must write nothing, and returns its output, error and exit code.
func (c *doomed) teardown(t *testing.T, args ...string) (string, int, error) {
	t.Helper()
	args = append([]string{"teardown", "--kubeconfig", writeKubeconfig(t, c.URL)}, args...)
	out, err := execute(t.Context(), "exeunt", args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.writes) > 0 {
		t.Errorf("teardown %q wrote: %q", args, c.writes)
	}
	return out, terminal.ExitStatus(err), err
}

func TestPlanIsPrintedAndNothingIsWritten(t *testing.T) {
	out, code, err := newDoomed(t, "orders").teardown(t)
	for _, want := range []string{"shop/orders (pv-orders)", "vol-orders", clusterID, "DELETE   1 volume",
		"nothing was written", "exeunt teardown --confirm=f81d4fae "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if err != nil || code != 0 {
		t.Errorf("exit code %d, error %v", code, err)
	}
}

// Who pastes the command keeps what the plan keeps.
func TestNextCommandKeepsFlagsOfPlan(t *testing.T) {
	out, _, err := newDoomed(t, "orders").teardown(t, "--preserve=pvc/shop/orders", "--last=shop", "--timeout=2h")
	want := "exeunt teardown --confirm=f81d4fae --timeout=2h0m0s --preserve=pvc/shop/orders --last=shop --kubeconfig"
	if err != nil || !strings.Contains(out, want) || !strings.Contains(out, "KEEP     1 volume") {
		t.Errorf("%q is missing in, error %v:\n%s", want, err, out)
	}
}

func TestPlanIsOneDocument(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		out, _, err := newDoomed(t, "orders").teardown(t, "-o", format)
		var document teardown.Document
		if decoded := yaml.UnmarshalStrict([]byte(out), &document); err != nil || decoded != nil ||
			document.Cluster.ID != clusterID || len(document.Items) != 1 || document.Items[0].ExternalID != "vol-orders" {
			t.Errorf("%s: %+v, errors %v, %v", format, document, err, decoded)
		}
	}
}

func TestEmptyClusterIsToldSo(t *testing.T) {
	out, code, err := newDoomed(t).teardown(t)
	if err != nil || code != 0 || !strings.Contains(out, "Nothing exists outside of the cluster") {
		t.Errorf("exit code %d, error %v:\n%s", code, err, out)
	}
}

// refusedPlans are refused with exit code 4.
var refusedPlans = map[string]struct {
	args   []string
	inPlan bool
	want   []string
}{
	"no ID":           {[]string{"--confirm="}, false, []string{"--confirm has no ID", "has the ID " + clusterID}},
	"no value":        {[]string{"--confirm"}, false, []string{"--confirm has no ID", "has the ID " + clusterID}},
	"a second time":   {[]string{"--confirm=f81d4fae", "--confirm"}, false, []string{"--confirm has no ID", clusterID}},
	"a short ID":      {[]string{"--confirm=f81d4fa"}, false, []string{"=f81d4fa is too short, at least 8", clusterID}},
	"another cluster": {[]string{"--confirm=0a1b2c3d-0"}, false, []string{"0a1b2c3d-0 is not the ID of this", clusterID}},
	"a longer ID":     {[]string{"--confirm=" + clusterID + "0"}, false, []string{"is not the ID of this cluster"}},
	"a context":       {[]string{"--confirm=there"}, false, []string{"there is the name of a context, with", clusterID}},
	"a typo of a claim": {[]string{"--confirm=f81d4fae", "--preserve=pvc/shop/oders"}, true,
		[]string{`there is no PersistentVolumeClaim "shop/oders"`}},
	"a typo in the plan": {[]string{"--preserve=pv/pv-oders"}, true, []string{`there is no PersistentVolume "pv-oders"`}},
	"a kind that is not served": {[]string{"--preserve=volumesnapshot/shop/a"}, true,
		[]string{`there is no VolumeSnapshot "shop/a"`}},
	"a typo of a namespace": {[]string{"--confirm=f81d4fae", "--last=shoop"}, true,
		[]string{`there is no Namespace "shoop"`}},
	"a namespace that is kept": {[]string{"--preserve=namespace/shoop"}, true, []string{`there is no Namespace "shoop"`}},
}

func TestRefusedTeardownWritesNothing(t *testing.T) {
	for name, tc := range refusedPlans {
		t.Run(name, func(t *testing.T) {
			c := newDoomed(t, "orders")
			out, code, err := c.teardown(t, tc.args...)
			text := out
			if !tc.inPlan {
				text = err.Error()
				if strings.Contains(text, "\n") || !strings.Contains(text, c.URL) || out != "" {
					t.Errorf("want one sentence with the server, and no output: %v, %q", err, out)
				}
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
					t.Errorf("%q is missing in:\n%s", want, text)
				}
			}
			if code != exitRefused || !strings.Contains(err.Error(), "nothing was written") {
				t.Errorf("exit code %d, error %v", code, err)
			}
		})
	}
}

func TestNamespaceAdminIsShownMissingRules(t *testing.T) {
	c := newDoomed(t, "orders")
	c.forbids = func(r *authorizationv1.ResourceAttributes) bool { return r.Namespace != "shop" }
	for _, args := range [][]string{{}, {"--confirm=f81d4fae"}} {
		out, code, err := c.teardown(t, args...)
		for _, want := range []string{`{apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: [`,
			`{apiGroups: ["lifecycle.exeunt.io"], resources: ["alives"], verbs: [delete`} {
			if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, want) {
				t.Errorf("%q is missing in:\n%s", want, out)
			}
		}
		if code != exitRefused {
			t.Errorf("exit code %d, error %v", code, err)
		}
	}
}

// wrongTeardowns are refused before anything is read.
var wrongTeardowns = map[string]struct{ flag, want string }{
	"no time":            {"--timeout=0", "--timeout=0 is refused: it must be 1m at least, such as 90m or 1h30m"},
	"a negative time":    {"--timeout=-5m", "--timeout=-5m is refused: it must be 1m at least"},
	"days":               {"--timeout=10d", "--timeout=10d is refused: a day is 24h, which is the most"},
	"too long":           {"--timeout=25h", "--timeout=25h is refused: it must be 24h at most"},
	"parts of a second":  {"--timeout=90500ms", "--timeout=90500ms is refused: it must be in whole seconds"},
	"no unit":            {"--timeout=60", "--timeout=60 is refused: it must be a time from 1m to 24h, such as 90m"},
	"abort and confirm":  {"--abort --confirm=f81d4fae", "--abort stops a teardown: no other flag"},
	"abort and preserve": {"--abort --preserve=pv/a", "--abort stops a teardown: no other flag"},
	"another format":     {"-o=wide", `--output must be json, yaml or be left out, not "wide"`},
	"an unknown kind":    {"--preserve=pod/a", `with one of the kinds pv, pvc, namespace, service, ingress, gateway,`},
	"no name":            {"--preserve=pvc/shop/", `such as pvc/shop/orders or pv/NAME, not "pvc/shop/"`},
	"a volume in one":    {"--preserve=pv/shop/a", `not "pv/shop/a"`},
	"a name alone":       {"--preserve=orders", `not "orders"`},
	"no other cluster":   {"--other-kubeconfig=/does/not/exist", "--other-kubeconfig /does/not/exist: load kubeconfig"},
	"an unknown flag":    {"--force", "there is no flag --force; exeunt teardown --help lists all"},
	"an unknown action":  {"removed", `exeunt teardown takes no arguments, not "removed"`},
}

func TestWrongTeardownIsRefusedInASentence(t *testing.T) {
	for name, tc := range wrongTeardowns {
		t.Run(name, func(t *testing.T) {
			out, code, err := newDoomed(t).teardown(t, strings.Fields(tc.flag)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || out != "" ||
				code != 1 {
				t.Errorf("error = %v, exit code %d, output %q; want %s in one line", err, code, out, tc.want)
			}
		})
	}
}

func TestPreserveTakesNamespaceOfContext(t *testing.T) {
	c := newDoomed(t, "orders")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + c.URL + "\"}}]\n" +
		"contexts: [{name: a, context: {cluster: c, namespace: shop}}]\ncurrent-context: a\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := c.teardown(t, "--kubeconfig", file, "--preserve=PVC/orders")
	if err != nil || !strings.Contains(out, "Preserved") {
		t.Errorf("error %v:\n%s", err, out)
	}
}

func TestOtherClusterKeepsSharedDisks(t *testing.T) {
	other := newDoomed(t, "orders")
	other.objects["namespaces"] = nil // another ID, which its user may not read
	out, _, err := newDoomed(t, "orders").teardown(t, "--other-kubeconfig", writeKubeconfig(t, other.URL))
	if err != nil || !strings.Contains(out, "HandleShared") {
		t.Errorf("error %v:\n%s", err, out)
	}
}

// --timeout is the time of the permission: it is not what to raise.
func TestSlowServerIsWaitedForByRequestTimeout(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-request.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	_, err := execute(t.Context(), "exeunt", "teardown", "--kubeconfig", writeKubeconfig(t, server.URL), "--request-timeout=200ms")
	if err == nil || !strings.Contains(err.Error(), "did not answer within 200ms (--request-timeout): nothing was seen") {
		t.Error(err)
	}
}

// The other cluster may have been read at the start; now nobody knows which disks are its own.
func TestUnreadOtherClusterRefusesAfterStart(t *testing.T) {
	one := alive.New()
	one.DeletionTimestamp = &metav1.Time{}
	one.Status.Conditions = []metav1.Condition{{Type: alive.ConditionStarted, Status: metav1.ConditionTrue}}
	for reason, want := range map[string]bool{"OtherUnreadable": true, "SameCluster": true, "Unreadable": false} {
		read := &plan.Plan{Alive: one}
		read.Problems = []teardown.Problem{{Reason: reason, Refuses: true}}
		if refuses(read) != want {
			t.Errorf("%s refuses: %t, want %t", reason, !want, want)
		}
	}
}

// An empty value would be the kubeconfig of the environment: the disks of the cluster that was meant would be deleted.
func TestEmptyOtherKubeconfigIsRefused(t *testing.T) {
	c, unrelated := newDoomed(t, "orders"), newDoomed(t)
	unrelated.objects["namespaces"][0].SetUID("another")
	t.Setenv("KUBECONFIG", writeKubeconfig(t, unrelated.URL))
	_, code, err := c.teardown(t, "--other-kubeconfig=")
	if code != exitRefused || !strings.Contains(err.Error(), "--other-kubeconfig is empty") {
		t.Errorf("exit code %d, error %v", code, err)
	}
}

func TestInterruptedReadIsNotFinished(t *testing.T) {
	c := newDoomed(t, "orders")
	for _, tc := range []struct {
		args []string
		want int
	}{{[]string{"--confirm=f81d4fae"}, exitWaiting}, {nil, 128 + int(syscall.SIGINT)}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(terminal.SignalError{Signal: syscall.SIGINT})
		args := append([]string{"teardown", "--kubeconfig", writeKubeconfig(t, c.URL)}, tc.args...)
		_, err := execute(ctx, "exeunt", args...)
		if code := terminal.ExitStatus(err); code != tc.want || len(c.writes) > 0 {
			t.Errorf("%q: exit code %d, want %d: %v, writes %q", tc.args, code, tc.want, err, c.writes)
		}
	}
}
