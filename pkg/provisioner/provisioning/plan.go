package provisioning

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// plan is a request and the PersistentVolume for the requested volume.
type plan struct {
	request backend.Request
	// volume is the PersistentVolume without the fields from the driver's response.
	volume *v1.PersistentVolume
	// selected is the selected node, "" for none; class is the name of the storage class.
	selected, class string
	// alternative: the request is a superseded one, sent because the existing volume does not
	// match the last request.
	alternative bool
	// keeps: the class says Retain now, whatever it said when the request was built.
	keeps bool
}

// retained returns the plan for a volume with the policy Retain. A claim that waits for the
// answer to an earlier request gets a volume that is not deleted by mistake.
func (p *plan) retained(honor bool) *plan {
	retained := *p
	retained.keeps, retained.volume = true, p.volume.DeepCopy()
	retained.assign(retained.volume, honor)
	return &retained
}

// assign sets the fields of the volume that do not depend on the storage system.
func (p *plan) assign(volume *v1.PersistentVolume, honor bool) {
	if p.keeps {
		volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	}
	provision.AssignmentOf(p.volume).ApplyTo(volume, honor)
}

// withoutCredentials returns the plan without credentials, for the memory.
func (p *plan) withoutCredentials() *plan {
	without := *p
	without.request = p.request.WithoutCredentials()
	return &without
}

// equals reports whether both plans have the same request and reclaim policy.
func (p *plan) equals(other *plan) bool {
	return other != nil && p.request.Equal(other.request) && p.volume.Spec.PersistentVolumeReclaimPolicy == other.volume.Spec.PersistentVolumeReclaimPolicy
}

// secret returns the identity of the request's secret, nil for a request without a secret.
func (p *plan) secret() *journal.Secret {
	_, secret := p.request.Stored()
	return secret
}

// stored returns the journal's form of the request.
func (p *plan) stored() journal.Request {
	request, _ := p.request.Stored()
	return request
}

// orAlternative returns the plan with the last or a superseded request, in turn, by the
// number of mismatches so far.
func (c *Controller) orAlternative(p *plan, r claimRecord) *plan {
	number := r.request.answers.alternatives % (len(r.entry.superseded) + 1)
	if number == 0 {
		return p
	}
	request, err := c.Backend.Restore(r.entry.superseded[number-1], p.secret())
	if err != nil { // cannot happen: planFrom rejects such an entry
		return p
	}
	other := *p
	other.request, other.alternative = request, true
	return &other
}

// planFrom returns the plan of an inherited entry.
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
