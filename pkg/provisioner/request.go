package provisioner

import (
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// requestKind names the format of requests in the journal.
const requestKind = "sig-storage-lib-external-provisioner/v10"

// request is what Provision is called with.
type request struct {
	volume string
	Class  *storagev1.StorageClass   `json:"class"`
	Claim  *v1.PersistentVolumeClaim `json:"claim"`
	Node   *v1.Node                  `json:"node,omitempty"`
}

// newRequest returns the request with the options, without what is large and says nothing
// about the volume: the same request is repeated after a restart.
func newRequest(options controller.ProvisionOptions) *request {
	r := &request{volume: options.PVName, Class: options.StorageClass.DeepCopy(), Claim: options.PVC.DeepCopy(),
		Node: options.SelectedNode.DeepCopy()}
	trimMeta(&r.Class.ObjectMeta)
	trimMeta(&r.Claim.ObjectMeta)
	if r.Node != nil {
		trimMeta(&r.Node.ObjectMeta)
		r.Node.Status.Images, r.Node.Status.Conditions = nil, nil
		r.Node.Status.VolumesInUse, r.Node.Status.VolumesAttached = nil, nil
	}
	return r
}

func trimMeta(meta *metav1.ObjectMeta) {
	meta.ManagedFields = nil
	delete(meta.Annotations, v1.LastAppliedConfigAnnotation)
}

// options returns a copy that the provisioner may change.
func (r *request) options() controller.ProvisionOptions {
	return controller.ProvisionOptions{StorageClass: r.Class.DeepCopy(), PVName: r.volume, PVC: r.Claim.DeepCopy(),
		SelectedNode: r.Node.DeepCopy()}
}

// Equal reports whether both requests ask for the same volume: versions of objects do not
// count.
func (r *request) Equal(other backend.Request) bool {
	known, ok := other.(*request)
	return ok && r.volume == known.volume && string(r.withoutVersions()) == string(known.withoutVersions())
}

// withoutVersions returns the request's data without versions and status, which change
// while a claim waits.
func (r *request) withoutVersions() []byte {
	plain := request{Class: r.Class.DeepCopy(), Claim: r.Claim.DeepCopy(), Node: r.Node.DeepCopy()}
	if !plain.isComplete() {
		return nil
	}
	plain.Class.ResourceVersion, plain.Claim.ResourceVersion = "", ""
	plain.Claim.Status = v1.PersistentVolumeClaimStatus{}
	if plain.Node != nil {
		plain.Node.ResourceVersion, plain.Node.Status = "", v1.NodeStatus{}
	}
	return plain.data()
}

func (r *request) data() []byte {
	data, err := json.Marshal(r)
	if err != nil { // Kubernetes objects always have a JSON form
		panic(err)
	}
	return data
}

// Stored returns the journal's form of the request, which is sent without a secret.
func (r *request) Stored() (journal.Request, *journal.Secret) {
	payload := &journal.Payload{Kind: requestKind, Volume: r.volume}
	if r.isComplete() { // not shortened
		payload.Data = r.data()
	}
	return journal.Request{Payload: payload}, nil
}

// WithoutCredentials returns the request: it has none.
func (r *request) WithoutCredentials() backend.Request { return r }

// restore returns the request of a journal entry.
func restore(stored journal.Request) (*request, error) {
	if stored.Payload == nil || stored.Payload.Kind != requestKind {
		return nil, errors.New("the journal entry was written by another kind of provisioner")
	}
	r := &request{volume: stored.Payload.Volume}
	if len(stored.Payload.Data) == 0 { // shortened: the volume is being discarded
		return r, nil
	}
	if err := json.Unmarshal(stored.Payload.Data, r); err != nil {
		return nil, fmt.Errorf("read the request of the journal entry: %w", err)
	}
	if !r.isComplete() {
		return nil, errors.New("the request of the journal entry has no claim or no storage class")
	}
	return r, nil
}

// isComplete reports whether Provision can be called with the request.
func (r *request) isComplete() bool { return r.Class != nil && r.Claim != nil }
