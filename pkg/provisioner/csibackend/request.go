package csibackend

import (
	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// request is a CreateVolumeRequest.
type request struct {
	// message has no secrets.
	message *spec.CreateVolumeRequest
	// topologyCut: the message may have asked for further topology segments when it was sent first.
	topologyCut bool
	// secret identifies the secret that the message is sent with, nil for none.
	secret *journal.Secret
	// credentials are for the first call; later ones read the secret again.
	credentials provision.Credentials
}

// Equal reports whether both messages are the same, secrets aside.
func (r *request) Equal(other backend.Request) bool {
	known, ok := other.(*request)
	return ok && proto.Equal(r.message, known.message)
}

// Stored returns the message and the identity of its secret.
func (r *request) Stored() (journal.Request, *journal.Secret) {
	return journal.Request{CreateVolumeRequest: r.message, TopologyCut: r.topologyCut}, r.secret
}

// WithoutCredentials returns the request without the content of its secret.
func (r *request) WithoutCredentials() backend.Request {
	return &request{message: r.message, topologyCut: r.topologyCut, secret: r.secret}
}
