package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

const driver = "csi.example.com"

// observed returns an observation of the Leases, with no pods. Its Reader has no cluster.
func observed(t *testing.T, leases map[[2]string]*coordinationv1.Lease, journals ...string) *observation {
	t.Helper()
	reader, err := cluster.NewReaderWithClock(&rest.Config{Host: "http://127.0.0.1:1"}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	s := &observation{options: &Options{}, reader: reader, programs: programs{leasesSeen: true, leasesAt: now,
		podsSeen: true, leases: leases}}
	for _, namespace := range journals {
		owner := journal.Journal{Namespace: namespace, Driver: driver}
		lease := owner.Lease(journal.KindActive, 0, "pod_exeunt", journal.Custody{LeaderLease: "u"}, map[types.UID]string{})
		s.programs.journals = append(s.programs.journals, journalLease{lease, owner, journal.KindActive, 0})
	}
	return s
}

// named returns a Lease in the namespace, as programs holds it.
func named(namespace string, lease *coordinationv1.Lease) map[[2]string]*coordinationv1.Lease {
	lease.Namespace, lease.Name = namespace, "csi-example-com"
	return map[[2]string]*coordinationv1.Lease{{namespace, lease.Name}: lease}
}

func TestLeaderInAnotherNamespaceServes(t *testing.T) {
	leases := named("new", lease("pod_exeunt", time.Second))
	leases[[2]string{"old", "csi-example-com"}] = lease("", time.Hour)
	s := observed(t, leases, "old")
	if got := s.server(driver); got != rollback.ServerExeunt {
		t.Errorf("server = %v, want the leader beside an old journal", got)
	}
}

func TestPodWithLeasesInAnotherNamespaceServes(t *testing.T) {
	s := observed(t, named("leases", lease("pod_exeunt", time.Hour)), "leases")
	if got := s.server(driver); got != rollback.ServerNone {
		t.Fatalf("server without pods = %v: the test proves nothing", got)
	}
	env := []corev1.EnvVar{
		{Name: "LEASES", Value: "leases"},
		{Name: "CONFIGURED", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "x"}}},
	}
	for name, words := range map[string][]string{
		"one word": {"--leader-election-namespace=leases"}, "two words": {"--leader-election-namespace", "leases"},
		"a variable": {"--leader-election-namespace=$(LEASES)"}, "a variable of unknown value": {"--leader-election-namespace=$(CONFIGURED)"},
		"no variable": {"--leader-election-namespace=$(NONE)"},
	} {
		t.Run(name, func(t *testing.T) {
			s.programs.pods = nil
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "r/exeunt/provisioner:v1",
				Args: append([]string{"--leader-election"}, words...), Env: env}}}}
			pod.Namespace = "driver"
			s.addPod(pod)
			if got := s.server(driver); got != rollback.ServerExeunt {
				t.Errorf("server = %v, want the pod that waits to lead", got)
			}
		})
	}
}

func TestNamespaceOfPodInVariable(t *testing.T) {
	container := corev1.Container{
		Args: []string{"--leader-election-namespace=$(NAMESPACE)"},
		Env: []corev1.EnvVar{{Name: "NAMESPACE",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}},
	}
	if got := electionNamespace(&container, "driver"); got != "driver" {
		t.Errorf("namespace of the Leases is %q, want that of the pod", got)
	}
}

// A list that fails after its first page has shown neither all Leases nor all pods.
func TestPartOfListNeverShowsTheEnd(t *testing.T) {
	for name, change := range map[string]func(*observation){
		"Leases":                  func(s *observation) { s.programs.leasesSeen = false },
		"Leases, driver is named": func(s *observation) { s.programs.leasesSeen, s.options.Stopped = false, []string{driver} },
		"pods":                    func(s *observation) { s.programs.podsSeen = false },
		"pods, a pod was seen, driver is named": func(s *observation) {
			s.programs.podsSeen, s.options.Stopped = false, []string{driver}
			s.programs.pods = []programPod{{namespace: "n", kind: provisionerKind}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := observed(t, named("n", lease("pod_exeunt", time.Hour)), "n")
			change(s)
			if got := s.server(driver); got.Ended() {
				t.Errorf("server = %v after a part of the list", got)
			}
		})
	}
}

func TestLeaderOnFirstPageServes(t *testing.T) {
	s := observed(t, named("n", lease("pod_exeunt", time.Second)), "n")
	s.programs.leasesSeen = false
	if got := s.server(driver); got != rollback.ServerExeunt {
		t.Errorf("server = %v", got)
	}
}

// garbage-collector has the suffix of our programs and a Lease of the control plane, but no driver.
func TestGarbageCollectorIsNoProvisioner(t *testing.T) {
	for name, age := range map[string]time.Duration{"held": time.Second, "expired": time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := observed(t, map[[2]string]*coordinationv1.Lease{{cluster.ControlPlane, "garbage-collector"}: lease("pod_exeunt",
				age)})
			if got := s.programs.drivers(); len(got) > 0 {
				t.Errorf("drivers = %q, want none", got)
			}
			if got := s.anyServer(); got != rollback.ServerUnseen {
				t.Errorf("server of claims without a driver = %v", got)
			}
			if plan := newPlan(s); plan.Outcome() != rollback.NothingLeft {
				t.Errorf("outcome = %v:\n%s", plan.Outcome(), plan.text(80))
			}
		})
	}
}

func TestJournalStaysWhilePodStandsBy(t *testing.T) {
	s := observed(t, named("n", lease("upstream", time.Second)), "n")
	s.programs.pods = []programPod{{namespace: "n", name: "standby", workload: "deployment/csi",
		container: "csi-provisioner", kind: provisionerKind}}
	s.decideLeases()
	if got, want := s.leases.items[0].decision,
		(rollback.Decision{Action: rollback.Wait, Reason: rollback.PodStandsBy}); got != want {
		t.Errorf("decision = %v, want %v", got, want)
	}
	if plan := newPlan(s); plan.Steps[3].State != rollback.Pending || len(plan.Steps[3].Commands) == 0 {
		t.Errorf("step 4 does not say how the pod is replaced: %+v", plan.Steps[3])
	}
}

func TestStoppedPVControllerIsNoProvisioner(t *testing.T) {
	s := observed(t, nil)
	s.options.Stopped = []string{PVController}
	if got := s.anyServer(); got != rollback.ServerUnseen {
		t.Errorf("server of claims without a driver = %v", got)
	}
}

func TestUnreadPodsBlockTheSwap(t *testing.T) {
	s := observed(t, nil)
	if a, b := s.stepProvisioners(false), s.stepLoops(false); a.State != rollback.Done || b.State != rollback.Done {
		t.Fatalf("in a cluster without Exeunt: %v, %v", a.State, b.State)
	}
	s.programs.podsSeen = false
	if a, b := s.stepProvisioners(false), s.stepLoops(false); a.State != rollback.Blocked || b.State != rollback.Blocked {
		t.Errorf("pods were not read: %v, %v, want blocked", a.State, b.State)
	}
}

// Each of 3,000 nodes has a journal, and 3,000 volumes an annotation.
func TestManyJournalsAndVolumesAreReadOnce(t *testing.T) {
	s := observed(t, nil)
	for i := range 3000 {
		owner := journal.Journal{Namespace: "n", Driver: driver, Node: fmt.Sprintf("node-%d", i)}
		lease := owner.Lease(journal.KindActive, 0, "pod_exeunt", journal.Custody{Written: 1}, nil)
		s.programs.journals = append(s.programs.journals, journalLease{lease, owner, journal.KindActive, 0})
	}
	volume := &corev1.PersistentVolume{}
	volume.Annotations = map[string]string{reclaim.Annotation: reclaim.AnnotationDone,
		"pv.kubernetes.io/provisioned-by": driver}
	for range 3000 {
		s.addVolume(t.Context(), volume)
	}
	if len(s.own.items) != 3000 || s.own.items[0].decision.Reason != rollback.ServerNotSeen {
		t.Errorf("%d items, first %+v", len(s.own.items), s.own.items[0])
	}
}

func TestUnknownValueOfAnnotationStays(t *testing.T) {
	s := observed(t, named("n", lease("upstream", time.Second)), "n")
	for value, want := range map[string]rollback.Decision{
		reclaim.AnnotationDone: {Action: rollback.Remove, Reason: rollback.Unneeded},
		"deleting":             {Action: rollback.Refuse, Reason: rollback.LaterVersion},
	} {
		volume := &corev1.PersistentVolume{}
		volume.Annotations = map[string]string{reclaim.Annotation: value, "pv.kubernetes.io/provisioned-by": driver}
		s.own.items = nil
		s.addVolume(t.Context(), volume)
		if got := s.own.items[0].decision; got != want {
			t.Errorf("%s: %v, want %v", value, got, want)
		}
	}
}

// A management cluster runs the control planes of other clusters in namespaces of their own.
func TestLoopsOfOtherClustersDoNotCount(t *testing.T) {
	for namespace, want := range map[string]rollback.Outcome{"tenant": rollback.NothingLeft,
		cluster.ControlPlane: rollback.SomethingLeft} {
		t.Run(namespace, func(t *testing.T) {
			leases := named("n", lease("upstream", time.Second))
			leases[[2]string{cluster.ControlPlane, cluster.UpstreamLoopsLease}] = lease("node-1_u", time.Second)
			s := observed(t, leases)
			s.addPod(loopsPod(namespace))
			if plan := newPlan(s); plan.Outcome() != want {
				t.Errorf("outcome %v, want %v:\n%s", plan.Outcome(), want, plan.text(80))
			}
		})
	}
}

// loopsPod is kube-controller-manager with a loop switched off.
func loopsPod(namespace string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Image: "r/kube-controller-manager:v1.36.3", Command: []string{"kube-controller-manager", "--controllers=*,-persistentvolume-binder"}},
	}}}
	pod.Namespace, pod.Name = namespace, "kcm"
	return pod
}

func TestLoopsOfOtherClustersRemoveNoFinalizer(t *testing.T) {
	for namespace, want := range map[string]rollback.Remover{"tenant": rollback.RemoverAbsent,
		cluster.ControlPlane: rollback.RemoverPresent} {
		s := observed(t, nil)
		s.addPod(loopsPod(namespace))
		if got := s.loopsRemover(); got != want {
			t.Errorf("kube-controller-manager in %s: remover %v, want %v", namespace, got, want)
		}
	}
}

// A first run has removed the journal. The leader Lease, which upstream's sidecar takes over, is left.
func TestRepeatedRunLeavesNothing(t *testing.T) {
	for name, journals := range map[string]bool{"before": true, "again": false} {
		t.Run(name, func(t *testing.T) {
			s := observed(t, named("n", lease("pod_exeunt", time.Hour)), "n")
			if !journals {
				s.programs.journals = nil
			}
			s.known.addDriver(driver)
			s.decideLeases()
			plan := newPlan(s)
			text := strings.Join(strings.Fields(string(plan.text(80))), " ")
			if want := map[bool]rollback.Outcome{true: rollback.SomethingLeft,
				false: rollback.NothingLeft}[journals]; plan.Outcome() != want {
				t.Errorf("outcome %v, want %v:\n%s", plan.Outcome(), want, text)
			}
			if !strings.Contains(text, driver+":") || strings.Contains(text, identity.LeaseName(driver)+":") ||
				strings.Contains(text, "such as this one") || strings.Contains(text, "--stopped DRIVER") {
				t.Errorf("the plan names the driver by its Lease, or a command that is not there:\n%s", text)
			}
		})
	}
}

// Its holder has the suffix of ours, while Alive is deleted and after a runner was killed.
func TestLeaseOfTeardownIsNoProvisioner(t *testing.T) {
	for name, age := range map[string]time.Duration{"runs": time.Second, "was killed": time.Hour} {
		held := lease("host_uid_exeunt", age)
		held.Namespace, held.Name = teardown.Namespace, teardown.LeaseName
		s := observed(t, map[[2]string]*coordinationv1.Lease{{held.Namespace, held.Name}: held})
		step := s.stepProvisioners(false)
		drivers, server := s.programs.drivers(), s.anyServer()
		if len(drivers) > 0 || step.State != rollback.Done || server == rollback.ServerExeunt {
			t.Errorf("%s: drivers %v, state %v, %q, any server %v", name, drivers, step.State, step.Text, server)
		}
	}
}
