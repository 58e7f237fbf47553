package provisioning

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// plan is one request and the PersistentVolume of its volume.
type plan struct {
	request backend.Request
	// volume is the PersistentVolume as far as it is known before the call.
	volume *v1.PersistentVolume
	// selected is the selected node, "" for none; class is the name of the storage class.
	selected, class string
	// alternative: an earlier request for the volume, tried because the last one does not
	// fit the volume that the storage system has.
	alternative bool
}

// withoutCredentials returns the plan as it may be remembered.
func (p *plan) withoutCredentials() *plan {
	without := *p
	without.request = p.request.WithoutCredentials()
	return &without
}

// equals reports whether both plans lead to the same volume.
func (p *plan) equals(other *plan) bool {
	return other != nil && p.request.Equal(other.request) && p.volume.Spec.PersistentVolumeReclaimPolicy == other.volume.Spec.PersistentVolumeReclaimPolicy
}

// secret returns the identity of the secret that the request is sent with, nil for none.
func (p *plan) secret() *journal.Secret {
	_, secret := p.request.Stored()
	return secret
}

// stored returns the journal's form of the request.
func (p *plan) stored() journal.Request {
	request, _ := p.request.Stored()
	return request
}

// orAlternative returns the plan, or the plan with a superseded request if the number of
// the try is that request's.
func (c *Controller) orAlternative(p *plan, r claimRecord) *plan {
	number := r.alternatives % (len(r.superseded) + 1)
	if number == 0 {
		return p
	}
	request, err := c.Backend.Restore(r.superseded[number-1], p.secret())
	if err != nil { // an entry with such a request is not inherited
		return p
	}
	other := *p
	other.request, other.alternative = request, true
	return &other
}

// planFrom returns the plan that the entry was written for.
func (c *Controller) planFrom(entry journal.Entry) (*plan, error) {
	request, err := c.Backend.Restore(entry.Request, entry.Secret)
	if err != nil {
		return nil, err
	}
	for _, superseded := range entry.Superseded {
		if _, err := c.Backend.Restore(superseded, entry.Secret); err != nil {
			return nil, err
		}
	}
	return &plan{request: request, volume: entry.Volume, selected: entry.Node, class: entry.Volume.Spec.StorageClassName}, nil
}
