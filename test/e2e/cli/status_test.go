package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/status"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
)

// elect are the flags of provisioners with leader election.
const elect = "--leader-election --leader-election-namespace=" + deploy.Namespace +
	" --leader-election-retry-period=500ms"

// statusReport is the JSON output; its answer is text.
type statusReport struct {
	status.Report
	Protection string `json:"protection"`
}

// run runs "exeunt status" as the user of the kubeconfig.
func run(s *harness.Session, kubeconfig string, args ...string) (output string, code int) {
	s.T.Helper()
	path, err := harness.Binaries().Path("exeunt")
	s.Must(err, "find exeunt")
	process := exec.CommandContext(s.Ctx, path, append([]string{"status", "--kubeconfig=" + kubeconfig}, args...)...)
	text, err := process.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.T.Fatalf("exeunt status %q: %v", args, err)
	}
	return string(text), process.ProcessState.ExitCode()
}

// readStatus returns the report for the administrator, and checks the exit code.
func readStatus(s *harness.Session, code int, args ...string) statusReport {
	s.T.Helper()
	text, got := run(s, s.Plane.AdminKubeconfig, append(args, "-o", "json")...)
	if got != code {
		s.T.Errorf("exit code %d, want %d:\n%s", got, code, text)
	}
	var r statusReport
	s.Must(json.Unmarshal([]byte(text), &r), "decode the report")
	return r
}

// driver returns the mock driver's part of the report.
func (r statusReport) driver(s *harness.Session) status.Driver {
	s.T.Helper()
	for _, driver := range r.Drivers {
		if driver.Name == s.Driver.DriverName {
			return driver
		}
	}
	s.T.Fatalf("the report lacks the driver: %+v", r.Drivers)
	return status.Driver{}
}

// bind binds claims of the policy Delete.
func bind(s *harness.Session, names ...string) {
	s.T.Helper()
	for _, name := range names {
		s.CreateClaim(name, harness.DeleteClass)
	}
	for _, name := range names {
		s.AwaitBound(name)
	}
}

func TestStatusOfOurPrograms(t *testing.T) {
	s := harness.Own(t, harness.Setup{LeaderElection: true, ProvisionerFlags: elect})
	policy := map[bool]string{true: "present", false: "unserved"}[s.ApplyAdmission()]
	bind(s, "a", "b")
	s.CreateClaim("kept", harness.RetainClass)
	s.AwaitBound("kept")
	r := readStatus(s, 0)
	d := r.driver(s)
	if d.Dynamic != 2 || d.Protected != 2 || d.Unprotected != 0 || d.Provisioner.Program != "provisioner" ||
		d.Provisioner.SeenBy != "lease" {
		t.Errorf("driver: %+v", d)
	}
	if r.Protection != "on" || r.Policy.State != policy || r.Policy.Bound != (policy == "present") ||
		r.Loops.Writers != "pv-controller" {
		t.Errorf("protection %s, policy %+v, loops %+v", r.Protection, r.Policy, r.Loops)
	}
	held := 0
	for _, lease := range r.Leases {
		if lease.State == "held" && strings.HasSuffix(lease.Holder, "_exeunt") && lease.AgeSeconds <= 15 {
			held++
		}
	}
	if held != 2 {
		t.Errorf("leases: %+v, want that of pv-controller and that of the provisioner", r.Leases)
	}
	if text, _ := run(s, s.Plane.AdminKubeconfig); !strings.HasPrefix(text, "PROTECTION: on\n") {
		t.Errorf("text:\n%s", text)
	}
	expectFewRequests(s, 2)
}

// expectFewRequests checks that each of the runs listed each kind at most once, or its objects of a namespace and some
// labels, and read no volume or claim by itself. The pods of all namespaces are not kept, so those of a program are listed.
func expectFewRequests(s *harness.Session, runs int) {
	s.T.Helper()
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	lists := map[string]int{}
	for _, event := range events {
		if !strings.HasPrefix(event.UserAgent, "exeunt/") {
			continue
		}
		switch {
		case event.Verb == "list":
			lists[strings.TrimSpace(strings.Join([]string{event.Resource, event.Namespace, event.Labels}, " "))]++
		case event.Verb != "get", event.Resource == "persistentvolumes", event.Resource == "persistentvolumeclaims":
			s.T.Errorf("%s %s %s/%s", event.Verb, event.Resource, event.Namespace, event.Name)
		}
	}
	for resource, count := range lists {
		if count > runs {
			s.T.Errorf("%s were listed %d times by %d runs", resource, count, runs)
		}
	}
	if lists["persistentvolumes"] != runs {
		s.T.Errorf("lists: %v, want the volumes once in each of %d runs", lists, runs)
	}
}

func TestStatusWithGateOff(t *testing.T) {
	s := harness.Own(t, harness.Setup{GateOff: true})
	bind(s, "a", "b")
	r := readStatus(s, 2)
	if d := r.driver(s); d.Unprotected != 2 || d.Protected != 0 || len(d.Examples) != 2 ||
		d.Provisioner.SeenBy != "volumes" || d.Provisioner.Program != "provisioner" {
		t.Errorf("driver: %+v", d)
	}
	if r.Protection != "incomplete" || len(r.Findings) == 0 {
		t.Errorf("protection %s, findings %q", r.Protection, r.Findings)
	}
}

// Neither control plane nor driver has pods, and no Lease shows the provisioner.
func TestStatusOfUpstreamWithoutPods(t *testing.T) {
	s := harness.Own(t, harness.Setup{UpstreamLoops: true, UpstreamSidecar: true})
	if d := readStatus(s, 0).Drivers; len(d) > 1 {
		t.Errorf("drivers before the first volume: %+v", d)
	}
	bind(s, "a")
	r := readStatus(s, 0)
	d := r.driver(s)
	if d.Protected != 1 || d.Unprotected != 0 || d.Provisioner.Program != "csi-provisioner" ||
		d.Provisioner.SeenBy != "volumes" {
		t.Errorf("driver: %+v", d)
	}
	policy := map[bool]string{true: "absent", false: "unserved"}[harness.ServesAdmissionPolicy()]
	if r.Policy.State != policy || r.Loops.Writers != "kube-controller-manager" {
		t.Errorf("policy %+v, loops %+v", r.Policy, r.Loops)
	}
}

func TestStatusSeesTwoSetsOfLoops(t *testing.T) {
	s := harness.Own(t, harness.Setup{}, harness.Within(2*harness.Timeout))
	s.Must(s.GrantUpstream(s.Ctx), "grant upstream's rights")
	bind(s, "first")
	if r := readStatus(s, 0); r.Loops.Writers != "pv-controller" {
		t.Errorf("loops: %+v", r.Loops)
	}
	loops, err := s.Plane.StartUpstreamLoops(s.Ctx, sandbox.Controller{Name: "upstream-loops"})
	s.Must(err, "start upstream's loops")
	t.Cleanup(func() { _ = loops.Kill() })
	var last statusReport
	err = wait.PollUntilContextCancel(s.Ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		claim := s.NewClaim("", harness.DeleteClass)
		claim.GenerateName = "more-"
		created, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Create(s.Ctx, claim, metav1.CreateOptions{})
		s.Must(err, "create claim")
		s.AwaitBound(created.Name)
		text, _ := run(s, s.Plane.AdminKubeconfig, "-o", "json")
		s.Must(json.Unmarshal([]byte(text), &last), "decode the report")
		return last.Loops.Writers == "both", nil
	})
	if err != nil || last.Protection != "incomplete" {
		t.Errorf("protection %s, loops %+v: %v", last.Protection, last.Loops, err)
	}
}

func TestStatusWithoutRights(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoPrograms: true})
	kubeconfig, err := s.Plane.Kubeconfig(s.Ctx, sandbox.User("nobody"))
	s.Must(err, "write kubeconfig")
	text, code := run(s, kubeconfig, "--before-switch")
	flat := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"PROTECTION: unknown", "no right to list persistentvolumes; grant the rule", "no right to list leases",
		"no right to list pods",
		"ADMISSION POLICY: unseen", "no right to list serviceaccounts",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
	if code != 2 || strings.Contains(flat, "deletes no volume") {
		t.Errorf("exit code %d, want 2:\n%s", code, text)
	}
}

// grantSome lets the user list nothing, and read the admission policy without its binding.
func grantSome(s *harness.Session, user string) {
	s.T.Helper()
	rbac := s.Client.RbacV1()
	_, err := rbac.ClusterRoles().Create(s.Ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingadmissionpolicies"}, Verbs: []string{"get"}},
			{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		}}, metav1.CreateOptions{})
	s.Must(err, "create ClusterRole")
	bindRole(s, user, user)
}

func bindRole(s *harness.Session, user, role string) {
	s.T.Helper()
	_, err := s.Client.RbacV1().ClusterRoleBindings().Create(s.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	s.Must(err, "create ClusterRoleBinding")
}

func TestStatusNamesWhatOneRightHides(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoPrograms: true})
	policy := "ADMISSION POLICY: present, its binding was not seen"
	if !s.ApplyAdmission() {
		policy = "ADMISSION POLICY: this API server has no MutatingAdmissionPolicy"
	}
	grantSome(s, "half")
	kubeconfig, err := s.Plane.Kubeconfig(s.Ctx, sandbox.User("half"))
	s.Must(err, "write kubeconfig")
	var text string
	err = wait.PollUntilContextCancel(s.Ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		text, _ = run(s, kubeconfig, "--before-switch")
		return !strings.Contains(text, "ADMISSION POLICY: unseen"), nil
	})
	s.Must(err, "wait for the rights")
	flat := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{policy, "no right to list serviceaccounts"} {
		if !strings.Contains(flat, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
}

// createSidecar creates a Deployment with a ready pod for the mock driver.
func createSidecar(s *harness.Session, image string, args ...string) {
	s.T.Helper()
	labels := map[string]string{"app": "csi"}
	pod := v1.PodSpec{Containers: []v1.Container{{Name: "csi-provisioner", Image: image, Args: append(args, "--csi-address=/run/"+s.Driver.DriverName+"/csi.sock")}}}
	deployments := s.Client.AppsV1().Deployments(s.Namespace)
	created, err := deployments.Create(s.Ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}, metav1.CreateOptions{})
	s.Must(err, "create Deployment")
	created.Status = appsv1.DeploymentStatus{ObservedGeneration: created.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	_, err = deployments.UpdateStatus(s.Ctx, created, metav1.UpdateOptions{})
	s.Must(err, "set the status of the Deployment")
}

func TestStatusReadsImageAndArguments(t *testing.T) {
	s := harness.Own(t, harness.Setup{UpstreamLoops: true, UpstreamSidecar: true})
	bind(s, "a")
	for name, tc := range map[string]struct {
		image, arg, program, version, gate string
		code                               int
	}{
		"upstream":          {"r/csi-provisioner:v6.3.0", "--v=5", "csi-provisioner", "v6.3.0", "on", 0},
		"older upstream":    {"r/csi-provisioner:v4.0.0", "--v=5", "csi-provisioner", "v4.0.0", "off", 2},
		"upstream, gate":    {"r/csi-provisioner:v4.0.0", "--feature-gates=HonorPVReclaimPolicy=true", "csi-provisioner", "v4.0.0", "on", 0},
		"by digest":         {"r/csi-provisioner@sha256:" + strings.Repeat("0", 64), "--v=5", "csi-provisioner", "sha256:" + strings.Repeat("0", 64), "unknown", 0},
		"ours, gate is off": {"r/exeunt/provisioner:v0.1.0", "--feature-gates=HonorPVReclaimPolicy=false", "provisioner", "v0.1.0", "off", 2},
	} {
		t.Run(name, func(t *testing.T) {
			createSidecar(s, tc.image, tc.arg)
			p := readStatus(s, tc.code).driver(s).Provisioner
			if p.SeenBy != "pods" || p.Program != tc.program || p.Version != tc.version || p.Gate != tc.gate {
				t.Errorf("provisioner: %+v", p)
			}
			s.Must(s.Client.AppsV1().Deployments(s.Namespace).Delete(s.Ctx, "csi", metav1.DeleteOptions{}), "delete Deployment")
		})
	}
}

func TestStatusBeforeSwitch(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoPrograms: true})
	create := func(name string, policy v1.PersistentVolumeReclaimPolicy, phase v1.PersistentVolumePhase) {
		volume := s.CreateVolume(name, policy, func(v *v1.PersistentVolume) {
			v.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.Namespace, Name: name, UID: "gone"}
		})
		volume.Status.Phase = phase
		_, err := s.Client.CoreV1().PersistentVolumes().UpdateStatus(s.Ctx, volume, metav1.UpdateOptions{})
		s.Must(err, "set the phase")
	}
	const remove, keep = v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRetain
	create("released", remove, v1.VolumeReleased)
	create("failed", remove, v1.VolumeFailed)
	create("retained", keep, v1.VolumeReleased)
	create("bound", remove, v1.VolumeBound)
	r := readStatus(s, 2, "--before-switch")
	var names []string
	for _, doomed := range r.BeforeSwitch.Deletes {
		names = append(names, strings.TrimPrefix(doomed.Name, s.Namespace+"-")+" "+doomed.When)
	}
	if got := strings.Join(names, ", "); got != "failed at once, released at once" {
		t.Errorf("deleted: %s", got)
	}
	if len(r.BeforeSwitch.MissingRights) > 0 {
		t.Errorf("missing rights of the manifests: %q", r.BeforeSwitch.MissingRights)
	}
	r = readStatus(s, 2, "--before-switch", "--service-account=storage/driver")
	if missing := strings.Join(r.BeforeSwitch.MissingRights, "\n"); !strings.Contains(missing, "storage/driver may not patch persistentvolumes") {
		t.Errorf("missing rights of an account without any: %s", missing)
	}
}

func TestRightsOfCSIProvisionerAreEnough(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoPrograms: true})
	s.Must(sandbox.Apply(s.Ctx, s.Plane.RESTConfig(), rbac.Manifests), "grant the rights of upstream's programs")
	r := readStatus(s, 0, "--before-switch", "--service-account="+deploy.Namespace+"/csi-provisioner")
	if len(r.BeforeSwitch.MissingRights) > 0 || len(r.Incomplete) > 0 {
		t.Errorf("missing rights: %q, could not be read: %q", r.BeforeSwitch.MissingRights, r.Incomplete)
	}
}

// The chart installs the programs in the namespace of the release.
func TestStatusFindsReleaseInAnotherNamespace(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoPrograms: true})
	create := func(name string, labels map[string]string) {
		account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		_, err := s.Client.CoreV1().ServiceAccounts(s.Namespace).Create(s.Ctx, account, metav1.CreateOptions{})
		s.Must(err, "create ServiceAccount")
	}
	create(deploy.PVController, map[string]string{deploy.PartOf: deploy.Project})
	create(deploy.Provisioner, nil) // of somebody else
	missing := strings.Join(readStatus(s, 2, "--before-switch").BeforeSwitch.MissingRights, "\n")
	if strings.Contains(missing, deploy.Namespace+"/") || !strings.Contains(missing, s.Namespace+"/pv-controller may not patch persistentvolumes") {
		t.Errorf("missing rights of a release without any: %s", missing)
	}
	if strings.Contains(missing, s.Namespace+"/provisioner") {
		t.Errorf("another project's account is judged: %s", missing)
	}
}

func TestStatusReadsTheListThatTheBindingNames(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoPrograms: true})
	if !s.ApplyAdmission() {
		return
	}
	s.MoveDriverList(s.Namespace)
	if policy := readStatus(s, 0).Policy; policy.List != cluster.Present.String() {
		t.Errorf("policy %+v", policy)
	}
}

// The ClusterRole of deploy/viewer suffices for "exeunt status".
func TestViewerMayReadTheStatus(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoPrograms: true})
	s.ApplyAdmission()
	s.Must(sandbox.Apply(s.Ctx, s.Plane.RESTConfig(), deploy.Viewer), "apply the roles")
	bindRole(s, "viewer", "exeunt-viewer")
	kubeconfig, err := s.Plane.Kubeconfig(s.Ctx, sandbox.User("viewer"))
	s.Must(err, "write kubeconfig")
	var seen statusReport
	err = wait.PollUntilContextTimeout(s.Ctx, 100*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		text, _ := run(s, kubeconfig, "-o", "json")
		s.Must(json.Unmarshal([]byte(text), &seen), "decode the report")
		return len(seen.Incomplete) == 0, nil
	})
	if err != nil {
		t.Errorf("a viewer does not see: %q", seen.Incomplete)
	}
}
