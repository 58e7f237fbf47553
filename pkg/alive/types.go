package alive

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The kind, and the name of its only object.
const (
	Group   = "lifecycle.exeunt.io"
	Version = "v1alpha1"
	Kind    = "Alive"
	Name    = "cluster"
	CRD     = "alives." + Group
)

const (
	// Finalizer is the finalizer of the runner. It is removed last: an Alive that is gone was Complete.
	Finalizer = Group + "/teardown"
	// PreserveLabel keeps an object, with any value: volume, claim, namespace, Service, Ingress, Gateway, VolumeSnapshot.
	PreserveLabel = Group + "/preserve"
)

// GroupVersion is the version that this package reads.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// Resource is the resource of the dynamic client.
var Resource = GroupVersion.WithResource("alives")

// Alive stands for the cluster.
type Alive struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// List is a list of them. At most one exists.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Alive `json:"items"`
}

// Spec is written by persons.
type Spec struct {
	// Protected forbids the teardown unless it is false. See [Alive.Protected].
	Protected *bool `json:"protected"`
	// Confirm is the UID of namespace kube-system.
	Confirm types.UID `json:"confirm,omitempty"`
	// ConfirmedAt is the time of the permission.
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
	// Timeout is how long the permission lasts, one hour by default.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Last are namespaces that go last, beside those that the runner finds.
	Last []string `json:"last,omitempty"`
}

// Phase is how far the teardown is.
type Phase string

// The phases. An empty phase has not been written yet.
const (
	// Protected: not permitted, not deleted.
	Protected Phase = "Protected"
	// Armed: permitted, not deleted.
	Armed Phase = "Armed"
	// Preparing: the freeze, the plan and kept volumes are written.
	Preparing Phase = "Preparing"
	// TearingDown: objects are deleted.
	TearingDown Phase = "TearingDown"
	// Stopped: nothing new is deleted.
	Stopped Phase = "Stopped"
	// Complete: nothing to delete is left.
	Complete Phase = "Complete"
)

// The reasons of phase Stopped, and of condition Ready.
const (
	ReasonProtected     = "Protected"
	ReasonNotConfirmed  = "NotConfirmed"
	ReasonNotReady      = "NotReady"
	ReasonExpired       = "Expired"
	ReasonPaused        = "Paused"
	ReasonRightsMissing = "RightsMissing"
)

// The types of the conditions.
const (
	// Ready: a deletion of Alive would begin the teardown.
	ConditionReady = "Ready"
	// Started: participants may act.
	ConditionStarted = "Started"
	// Complete: nothing to delete is left.
	ConditionComplete = "Complete"
)

// MaxRemaining is how many objects status.remaining has at most, the oldest.
const MaxRemaining = 50

// Status is written by the runner.
type Status struct {
	Phase          Phase              `json:"phase,omitempty"`
	Reason         string             `json:"reason,omitempty"`
	Message        string             `json:"message,omitempty"`
	StartedAt      *metav1.Time       `json:"startedAt,omitempty"`
	RemainingCount int64              `json:"remainingCount,omitempty"`
	Remaining      []Remaining        `json:"remaining,omitempty"`
	Conditions     []metav1.Condition `json:"conditions,omitempty"`
}

// Remaining is an object that the teardown waits for.
type Remaining struct {
	Object Object `json:"object"`
	// ExternalID is the volume handle, or the address of the load balancer.
	ExternalID string `json:"externalID,omitempty"`
	// Finalizer and Holder are what keeps the object, and which program has to remove it.
	Finalizer string `json:"finalizer,omitempty"`
	Holder    string `json:"holder,omitempty"`
	// Reason and Verdict are those of "exeunt why".
	Reason  string `json:"reason,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	// Since is when the wait began.
	Since *metav1.Time `json:"since,omitempty"`
	// Next is what a person can do.
	Next string `json:"next,omitempty"`
}

// Object names an object.
type Object struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

// AddToScheme makes typed clients know the kind.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(GroupVersion.WithKind(Kind), new(Alive))
	scheme.AddKnownTypeWithName(GroupVersion.WithKind(Kind+"List"), new(List))
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
