package journal

import (
	"encoding/json"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/encoding/protojson"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// State is what an entry stands for.
type State string

const (
	// Requested: CreateVolume was, or is about to be, called with the request.
	Requested State = ""
	// Discarding: the volume with the entry's handle serves nobody, and DeleteVolume
	// was, or is about to be, called for it.
	Discarding State = "discarding"
)

// Entry is one CreateVolume call whose outcome is not recorded yet. It holds no
// secret.
type Entry struct {
	// UID, Namespace and Name are those of the claim. The UID is the entry's key.
	UID       types.UID `json:"-"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// Node is the selected node at the time of the call, "" for none.
	Node  string `json:"node,omitempty"`
	State State  `json:"state,omitempty"`
	// Handle is the volume handle, for the state Discarding only.
	Handle string `json:"handle,omitempty"`
	// Request is the request without secrets. Superseded are earlier requests for the
	// same volume that were never answered, oldest first.
	Request    Request   `json:"request"`
	Superseded []Request `json:"superseded,omitempty"`
	// TopologyCut: the topology of the request was shortened to fit into an entry.
	TopologyCut bool `json:"topologyCut,omitempty"`
	// Volume is the PersistentVolume as far as it is known before the call.
	Volume *v1.PersistentVolume `json:"volume"`
	// Secret is the provisioner secret that the request is sent with, nil for none.
	Secret *Secret `json:"secret,omitempty"`
	// CustodyBroken: another program led after the entry was written.
	CustodyBroken bool `json:"custodyBroken,omitempty"`
	// Unresolved is set once an entry is kept for an administrator.
	Unresolved *Unresolved `json:"unresolved,omitempty"`
}

// VolumeName returns the name of the volume, "" if the entry has none.
func (e *Entry) VolumeName() string {
	if e.Volume == nil {
		return ""
	}
	return e.Volume.Name
}

// Secret identifies a secret. Another secret of the same name has another UID. Without
// a UID it is the secret of that name, whichever it is.
type Secret struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// Unresolved says why an entry needs an administrator.
type Unresolved struct {
	Reason string `json:"reason"`
	// Since is when the entry became unresolved, in seconds since 1970.
	Since int64 `json:"since"`
	// Finish: the administrator wants the request repeated and the volume recorded.
	Finish bool `json:"finish,omitempty"`
}

// Request is a CreateVolumeRequest that is encoded as JSON.
type Request struct {
	*csi.CreateVolumeRequest
}

// MarshalJSON returns the request in the JSON form of protocol buffers. A request
// with secrets is refused.
func (r Request) MarshalJSON() ([]byte, error) {
	if len(r.GetSecrets()) > 0 {
		return nil, fmt.Errorf("encode request for volume %s: it has secrets", r.GetName())
	}
	if r.CreateVolumeRequest == nil {
		return []byte("null"), nil
	}
	text, err := protojson.Marshal(r.CreateVolumeRequest)
	if err != nil {
		return nil, fmt.Errorf("encode request for volume %s: %w", r.GetName(), err)
	}
	return text, nil
}

// UnmarshalJSON is the inverse of MarshalJSON. Fields of later versions of the CSI
// specification are ignored.
func (r *Request) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	r.CreateVolumeRequest = &csi.CreateVolumeRequest{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, r.CreateVolumeRequest); err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	return nil
}

var _ json.Marshaler = Request{}
