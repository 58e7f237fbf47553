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
	// Discarding: the volume with the entry's handle serves no claim, and DeleteVolume
	// was, or is about to be, called for it.
	Discarding State = "discarding"
)

// Entry is one CreateVolume call whose outcome is not recorded yet. It holds no
// secret.
type Entry struct {
	// UID, Namespace and Name identify the claim. The UID is the entry's key.
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
	// Announced: the PersistentVolume of the volume was, or is about to be, created, so its user
	// may have removed it to keep the volume.
	Announced bool `json:"announced,omitempty"`
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
// a UID it is any secret of that name.
type Secret struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// Unresolved is why an entry needs an administrator.
type Unresolved struct {
	Reason string `json:"reason"`
	// Since is when the entry became unresolved, in seconds since 1970.
	Since int64 `json:"since"`
	// Finish: the administrator wants the request repeated and the volume recorded.
	Finish bool `json:"finish,omitempty"`
}

// Request is what a volume is requested with: a CreateVolumeRequest or a Payload. It is
// encoded as JSON.
type Request struct {
	*csi.CreateVolumeRequest
	// Payload is the request of a provisioner that is not a CSI driver, nil for a CSI
	// driver.
	Payload *Payload
	// TopologyCut: the topology of the request, as it was sent first, may have had further segments. The entry
	// stores that for all its requests.
	TopologyCut bool
}

// Payload is a request in a format of its provisioner.
type Payload struct {
	// Kind names the format; it must not be empty.
	Kind string `json:"kind"`
	// Volume is the name of the volume.
	Volume string `json:"name"`
	// Data is the request. It must not hold a secret.
	Data json.RawMessage `json:"data,omitempty"`
}

// VolumeName returns the name of the requested volume, "" if the request has none.
func (r Request) VolumeName() string {
	if r.Payload != nil {
		return r.Payload.Volume
	}
	return r.GetName()
}

// IsShortened reports whether the request has only the name of the volume, as in an entry of a
// volume that is being discarded and whose whole request is too large. It cannot be repeated.
func (r Request) IsShortened() bool {
	if r.Payload != nil {
		return len(r.Payload.Data) == 0
	}
	return len(r.GetVolumeCapabilities()) == 0
}

// MarshalJSON returns the payload, or the CreateVolumeRequest in the JSON form of protocol
// buffers. A request with secrets is refused.
func (r Request) MarshalJSON() ([]byte, error) {
	switch {
	case len(r.GetSecrets()) > 0:
		return nil, fmt.Errorf("encode request for volume %s: it has secrets", r.GetName())
	case r.Payload != nil:
		return json.Marshal(r.Payload)
	case r.CreateVolumeRequest == nil:
		return []byte("null"), nil
	}
	text, err := protojson.Marshal(r.CreateVolumeRequest)
	if err != nil {
		return nil, fmt.Errorf("encode request for volume %s: %w", r.GetName(), err)
	}
	return text, nil
}

// UnmarshalJSON is the inverse of MarshalJSON. Fields of later versions of the CSI
// specification are ignored; none of them is called kind.
func (r *Request) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	var payload Payload
	if err := json.Unmarshal(text, &payload); err == nil && payload.Kind != "" {
		r.Payload = &payload
		return nil
	}
	r.CreateVolumeRequest = &csi.CreateVolumeRequest{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, r.CreateVolumeRequest); err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	return nil
}

var _ json.Marshaler = Request{}
