package situations

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// pairs is the number of objects with two blockers each.
const pairs = 200

// ingredient is one blocker of an object.
type ingredient struct {
	finalizer string
	reason    blocker.Reason
	verdict   blocker.Verdict
}

// holders are finalizers of any kind whose controllers createHolders creates.
var holders = []ingredient{
	{"kueue.x-k8s.io/resource-in-use", blocker.ControllerActs, blocker.Waiting},
	{"situations.secrets.hashicorp.com/finalizer", blocker.ControllerActs, blocker.Waiting},
	{"operator.redpanda.com/finalizer", blocker.ControllerGone, blocker.Stuck},
	{"apps.victoriametrics.com/finalizer", blocker.ControllerFails, blocker.Stuck},
	{"serviceoperator.azure.com/finalizer", blocker.ControllerUnseen, blocker.Unknown},
	{"cleanup.situations.example/widget", blocker.UnknownFinalizer, blocker.Unknown},
}

// createHolders creates the controllers: alive, alive outside of the cluster, gone, crashing.
func (r *place) createHolders() {
	r.T.Helper()
	r.createDeployment(r.Namespace, "kueue", "registry.example/kueue/kueue:v0.12", 1, 1)
	r.createLease(r.Namespace, "b0d477c0.hashicorp.com", "outside_1", time.Second, 12*time.Hour)
	r.createDeployment(r.Namespace, "redpanda", "registry.example/redpanda-data/redpanda-operator:v25", 0, 0)
	r.createLease(r.Namespace, "aa9fc693.vectorized.io", "redpanda-7d9f8-x_1", time.Hour, 15*time.Second)
	deployment := r.createDeployment(r.Namespace, "vm", "registry.example/victoriametrics/operator:v0.60", 1, 0,
		withoutPods)
	r.createReplica(deployment, waits("CrashLoopBackOff", "back-off 5m0s restarting failed container"))
}

// pairing creates an object with two ingredients, deletes it, and returns KIND/NAME.
type pairing struct {
	kind string
	// own are ingredients that only the kind has.
	own    []ingredient
	create func(r *place, name string, chosen []ingredient) string
}

func pairings() []pairing {
	return []pairing{
		{"Widget", nil, (*place).createPairedWidget},
		{"PersistentVolume", []ingredient{{"kubernetes.io/pv-protection", blocker.ClaimExists, blocker.Waiting}}, (*place).createPairedVolume},
		{"PersistentVolumeClaim", []ingredient{{"kubernetes.io/pvc-protection", blocker.PodUsesClaim, blocker.Waiting}}, (*place).createPairedClaim},
		{"Pod", []ingredient{{"", blocker.GracePeriod, blocker.Waiting}}, (*place).createPairedPod},
	}
}

func TestBothBlockersOfPairAreNamed(t *testing.T) {
	r := &place{Session: harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(5*harness.Timeout))}
	seed, err := strconv.ParseUint(os.Getenv("EXEUNT_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("EXEUNT_SEED=%d repeats these pairs", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r.createHolders()
	r.createCRD(widget.group, widget.kind)
	r.createNode("situations", v1.ConditionTrue, 0)
	chosen := map[string][]ingredient{}
	var words []string
	for i := range pairs {
		p := pairings()[random.IntN(len(pairings()))]
		all := slices.Concat(p.own, holders)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		word := p.create(r, fmt.Sprintf("pair-%d", i), all[:2])
		chosen[word] = all[:2]
		words = append(words, word)
	}
	for batch := range slices.Chunk(words, 50) {
		for i, report := range r.whySeveral(batch) {
			expectPair(t, report, chosen[batch[i]])
		}
	}
}

// whySeveral explains several objects at once.
func (r *place) whySeveral(words []string) []blocker.Report {
	r.T.Helper()
	stdout, stderr, _ := r.run(append([]string{"why", "-o", "json", "-n", r.Namespace}, words...)...)
	var several struct{ Items []blocker.Report }
	if err := json.Unmarshal([]byte(stdout), &several); err != nil || len(several.Items) != len(words) {
		r.T.Fatalf("exeunt why %v printed %q and %q: %v", words, stdout, stderr, err)
	}
	return several.Items
}

// expectPair wants both ingredients in the report.
func expectPair(t *testing.T, report blocker.Report, chosen []ingredient) {
	t.Helper()
	worst := blocker.None
	for _, want := range chosen {
		worst = max(worst, want.verdict)
		if !slices.ContainsFunc(report.Blockers, func(b blocker.Blocker) bool {
			return b.Reason == want.reason && (want.finalizer == "" || b.Finalizer == want.finalizer)
		}) {
			t.Errorf("%v is not named in %+v", want, report)
		}
	}
	if report.Verdict < worst || report.Verdict == blocker.Stuck && worst != blocker.Stuck {
		t.Errorf("the verdict is %v with %+v: %+v", report.Verdict, chosen, report)
	}
}

// finalizersOf returns the finalizers that the test sets: the API server sets the others.
func finalizersOf(chosen []ingredient) []string {
	var all []string
	for _, one := range chosen {
		if one.finalizer != "" && !strings.HasPrefix(one.finalizer, "kubernetes.io/") {
			all = append(all, one.finalizer)
		}
	}
	return all
}

func has(chosen []ingredient, reason blocker.Reason) bool {
	return slices.ContainsFunc(chosen, func(one ingredient) bool { return one.reason == reason })
}

func (r *place) createPairedWidget(name string, chosen []ingredient) string {
	r.T.Helper()
	r.createCustom(widget.resource(), widget.kind, name, finalizersOf(chosen)...)
	return r.deleteCustom(widget.resource(), name)[0]
}

func (r *place) createPairedVolume(name string, chosen []ingredient) string {
	r.T.Helper()
	volume := r.CreateVolume(name, v1.PersistentVolumeReclaimRetain, func(volume *v1.PersistentVolume) {
		volume.Finalizers = finalizersOf(chosen)
		if has(chosen, blocker.ClaimExists) {
			claim := r.CreateClaim(name, r.Namespace)
			volume.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace,
				Name: claim.Name, UID: claim.UID}
		}
	})
	if has(chosen, blocker.ClaimExists) {
		volume.Status.Phase = v1.VolumeBound
		_, err := r.Client.CoreV1().PersistentVolumes().UpdateStatus(r.Ctx, volume, metav1.UpdateOptions{})
		r.Must(err, "set phase")
	}
	r.DeleteVolume(volume.Name)
	return "pv/" + volume.Name
}

func (r *place) createPairedClaim(name string, chosen []ingredient) string {
	r.T.Helper()
	r.CreateClaim(name, r.Namespace, func(claim *v1.PersistentVolumeClaim) { claim.Finalizers = finalizersOf(chosen) })
	if has(chosen, blocker.PodUsesClaim) {
		r.createPairPod(name, nil, name)
	}
	r.DeleteClaim(name)
	return "pvc/" + name
}

func (r *place) createPairedPod(name string, chosen []ingredient) string {
	r.T.Helper()
	r.createPairPod(name, finalizersOf(chosen), "")
	grace := int64(0) // without the kubelet the pod waits for its finalizers alone
	if has(chosen, blocker.GracePeriod) {
		grace = 3600
	}
	r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace}),
		"delete pod")
	return "pod/" + name
}

// createPairPod creates a running pod.
func (r *place) createPairPod(name string, finalizers []string, claim string) {
	r.T.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.Namespace, Finalizers: finalizers},
		Spec:       v1.PodSpec{NodeName: "situations", Containers: []v1.Container{{Name: "main", Image: "image"}}},
	}
	if claim != "" {
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
	}
	r.createPodWithStatus(pod, isReady)
}
