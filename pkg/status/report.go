package status

import (
	"fmt"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Protection is the answer for the whole cluster.
type Protection int

const (
	// ProtectionOn: every volume that should have the finalizer has it, and nothing was seen that switches it off.
	ProtectionOn Protection = iota
	// ProtectionUnknown: something could not be read.
	ProtectionUnknown
	// ProtectionPartly: something leaks, waits for an administrator, or is switched off.
	ProtectionPartly
)

// String returns the name of the value.
func (p Protection) String() string { return enum.Name(p, "on", "unknown", "incomplete") }

// MarshalText returns the value for JSON and YAML.
func (p Protection) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Report is what "exeunt status" found.
type Report struct {
	Protection Protection `json:"protection"`
	// Findings are sentences about what is not as it should be.
	Findings []string  `json:"findings"`
	Drivers  []Driver  `json:"drivers"`
	Leases   []Lease   `json:"leases"`
	Journals []Journal `json:"journals"`
	Policy   Policy    `json:"policy"`
	Loops    Loops     `json:"loops"`
	// Nodes is nil if no node has the label or the finalizer of node-terminator.
	Nodes *Nodes `json:"nodes,omitempty"`
	// Teardown is nil if there is no Alive, no freeze and no record of a teardown.
	Teardown *Teardown `json:"teardown,omitempty"`
	// BeforeSwitch is nil unless asked for.
	BeforeSwitch *BeforeSwitch `json:"beforeSwitch,omitempty"`
	// Incomplete names what could not be read, and which right would allow to read it.
	Incomplete []string `json:"incomplete"`
}

// Driver is a driver with its provisioner and its volumes.
type Driver struct {
	Name        string      `json:"name"`
	Provisioner Provisioner `json:"provisioner"`
	// Dynamic is the number of volumes with policy Delete that are bound or released, also of those that were created by hand.
	Dynamic int `json:"dynamic"`
	// Protected have the finalizer. Unprotected leak if they are deleted before their claims
	// now. TooLate were deleted before their finalizer was added.
	Protected   int `json:"protected"`
	Unprotected int `json:"unprotected"`
	TooLate     int `json:"tooLate"`
	// Examples are names of unprotected volumes and of those that were deleted too early.
	Examples []string `json:"examples"`

	unprotected, tooLate []string
	// reclaims is the number of these volumes whose disks the provisioner deletes. work tells whether it
	// runs. external: it is no CSI driver.
	reclaims int
	external bool
	work     work
}

// Provisioner is who provisions for a driver.
type Provisioner struct {
	// Program is "provisioner" for Exeunt's, "csi-provisioner" for upstream's, "other", or "".
	Program string `json:"program"`
	// SeenBy is "pods", "lease", "volumes" or "": not visible.
	SeenBy string `json:"seenBy"`
	// Where names the workload, the holder of the Lease or the volume.
	Where string `json:"where"`
	// Version is the tag of the image. Gate is "on", "off" or "unknown".
	Version string `json:"version"`
	Gate    string `json:"gate"`
	// State is that of the workload or of the Lease, such as "ready" or "held".
	State string `json:"state"`
}

// Lease is a leader Lease of pv-controller, kube-controller-manager, garbage-collector or a provisioner.
type Lease struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Holder    string `json:"holder"`
	Program   string `json:"program"`
	// State is "held", "expired", "expiredTwice" or "released". AgeSeconds is the time since the last renewal, else since
	// the creation.
	State      string `json:"state"`
	AgeSeconds int64  `json:"ageSeconds"`
}

// Journal is the journal of a driver, or of a driver on a node.
type Journal struct {
	Namespace  string  `json:"namespace"`
	Driver     string  `json:"driver"`
	Node       string  `json:"node"`
	Open       int     `json:"open"`
	Unresolved int     `json:"unresolved"`
	Entries    []Entry `json:"entries"`
}

// Entry is an entry of a journal.
type Entry struct {
	ClaimUID string `json:"claimUID"`
	Claim    string `json:"claim"`
	Volume   string `json:"volume"`
	// State is "open", "unresolved" or "unreadable". Since is in RFC 3339, "" if unknown.
	State      string `json:"state"`
	Since      string `json:"since"`
	AgeSeconds int64  `json:"ageSeconds"`
}

// Policy is the admission policy.
type Policy struct {
	// State is "present", "absent", "unseen" or "unserved": the API server has no such kind.
	State string `json:"state"`
	// Bound: its binding exists. Drivers are the drivers in its list.
	Bound   bool     `json:"bound"`
	Drivers []string `json:"drivers"`
	// Binding and List are "present", "absent" or "unseen", as State; List is "" without a policy.
	Binding string `json:"binding"`
	List    string `json:"list"`
}

// Loops is who runs the loops for volumes and claims.
type Loops struct {
	// Writers is "none", "pv-controller", "kube-controller-manager", "switched" or "both".
	Writers string `json:"writers"`
	// Evidence says what was seen.
	Evidence []string `json:"evidence"`
}

// find adds a sentence to the findings.
func (r *Report) find(format string, values ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, values...))
}

// conclude sets the answer for the whole cluster.
func (r *Report) conclude() {
	switch {
	case len(r.Findings) > 0:
		r.Protection = ProtectionPartly
	case len(r.Incomplete) > 0:
		r.Protection = ProtectionUnknown
	}
}
