package provisioning

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// onNode returns the observation of the claim with a selected node.
func (f *flow) onNode(name string) *observation {
	claim := f.syncClaim().DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storage.AnnSelectedNode, name)
	return &observation{claim: claim, name: "pvc-uid"}
}

// refuse waits because no request can be built.
func (f *flow) refuse(o *observation, err error) {
	o.cause, o.err = causeOf(err), err
	_ = f.wait(o, provision.State{Want: provision.Wanted, Prepared: provision.Refused}, provision.RequestRefused)
}

var claimEventCases = map[string]struct {
	act   func(f *flow, o *observation)
	words []string
}{
	"recorded": {(*flow).reportSuccess, []string{"Normal ProvisioningSucceeded ", "Successfully provisioned volume pvc-uid"}},
	"driver fails": {func(f *flow, o *observation) { _ = f.reportFailure(o, f.userError(o, errors.New("full"), false)) },
		[]string{"Warning ProvisioningFailed ", `failed to provision volume with StorageClass "class": full`}},
	"driver refuses": {func(f *flow, o *observation) { _ = f.reportFailure(o, f.userError(o, errors.New("bad"), true)) },
		[]string{"Warning ProvisioningFailed ", `failed to provision volume with StorageClass "class": `, "infeasible error",
			"etries will be delayed", "bad"}},
	"request is refused": {func(f *flow, o *observation) {
		f.refuse(o, &provision.Refusal{Sentence: "no such mode"})
	}, []string{"Warning ProvisioningFailed ", `failed to provision volume with StorageClass "class": no such mode`}},
	"class is missing": {func(f *flow, o *observation) {
		o.claim.Spec.StorageClassName = ptr.To("none")
		_, err := f.planFor(f.Context(), o, nil)
		f.refuse(o, err)
	}, []string{"Warning ProvisioningFailed ", `storageclass.storage.k8s.io "none" not found`}},
	"populator": {func(f *flow, o *observation) {
		o.claim.Spec.DataSource = &v1.TypedLocalObjectReference{APIGroup: ptr.To("example.com"), Kind: "Hello", Name: "h"}
		_, err := f.planFor(f.Context(), o, nil)
		f.refuse(o, err)
	}, []string{"Normal Provisioning ", "Assuming an external populator will provision the volume"}},
	"node is gone": {func(f *flow, _ *observation) { _, _ = f.selectedNode(f.Context(), f.onNode("n1")) },
		[]string{"Warning ProvisioningFailed ", `nodes "n1" not found`}},
	"node cannot be read": {func(f *flow, o *observation) {
		defer func(before Nodes) { f.Nodes = before }(f.Nodes)
		f.Nodes = liveNodes(func(context.Context, string) (*v1.Node, error) { return nil, errors.New("timeout") })
		_, err := f.selectedNode(f.Context(), f.onNode("n1"))
		f.refuse(o, err)
	}, []string{"Warning ProvisioningFailed ", "failed to get target node", "timeout"}},
	"object cannot be written": {func(f *flow, o *observation) {
		f.failNext("create", "persistentvolumes", false)
		f.updateRecord(o, func(r *claimRecord) {
			r.disk.volume = &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}
		})
		o.record, _ = f.memory.lookup("uid")
		_, _ = f.save(f.Context(), o)
	}, []string{"Warning ProvisioningFailed ", "rror creating provisioned PV object for claim ns/claim: "}},
	"cleanup fails": {func(f *flow, o *observation) { _ = f.reportCleanupFailed(o, errors.New("busy")) },
		[]string{"Warning ProvisioningCleanupFailed ", "Error cleaning provisioned volume for claim ns/claim: ", "busy"}},
}

// The key words are from the events of external-provisioner 6.4 and its library.
func TestClaimEventsHaveUpstreamKeyWords(t *testing.T) {
	f := newFlow(t)
	for name, tc := range claimEventCases {
		t.Run(name, func(t *testing.T) {
			f.Reporter.Forget("uid")
			tc.act(f, &observation{claim: f.syncClaim().DeepCopy(), name: "pvc-uid"})
			if len(f.events.Events) == 0 {
				t.Fatal("no event")
			}
			event := <-f.events.Events
			for _, words := range tc.words {
				if !strings.Contains(event, words) {
					t.Errorf("event %q lacks %q", event, words)
				}
			}
		})
	}
}
