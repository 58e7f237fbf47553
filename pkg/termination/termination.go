package termination

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	graceful "github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

const (
	// Label has the period of a Node, "30m" or "Never". Only Nodes with it are served.
	Label = "exeunt.io/termination-grace-period"
	// Finalizer keeps a Node and its claim until its termination ended.
	Finalizer = "exeunt.io/node-termination"
	// InstanceAnnotation has the providerID of a machine that the provider knew while it ran.
	InstanceAnnotation = "exeunt.io/instance"
	// TimestampAnnotation has the deadline of a Node. A user may write an earlier one.
	TimestampAnnotation = "exeunt.io/termination-timestamp"
	// ClaimTimestampAnnotation is the same on a NodeClaim, and is Karpenter's.
	ClaimTimestampAnnotation = "karpenter.sh/nodeclaim-termination-timestamp"
	// DisruptedTaint keeps new pods away. It is Karpenter's: tolerations and CSI drivers know it. Its time is that of the
	// first action.
	DisruptedTaint = "karpenter.sh/disrupted"
	// OutOfServiceValue is the value of our taint node.kubernetes.io/out-of-service. One with another value was set by an
	// administrator, and is a proof.
	OutOfServiceValue = "exeunt"
	// ScaleDownDisabled keeps the cluster autoscaler away, which would end all pods after 10 minutes.
	ScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ClaimGroup is the group of spec.nodeClassRef of the NodeClaims that are ours.
	ClaimGroup = "lifecycle.exeunt.io"
	// ReportLabel is on each ConfigMap with a report; its value is the name of the node, if that is a label value.
	ReportLabel = "exeunt.io/node-termination"
	// ReportKey is the key of the report in its ConfigMap.
	ReportKey = "report.json"
)

// controlPlane are the labels of nodes that are never served: the API server may run there.
var controlPlane = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

// PeriodOf returns the period that the Node names, and whether it names one. The error says why a label is not served.
func PeriodOf(node metav1.Object) (period deadline.Period, served bool, err error) {
	text, labeled := node.GetLabels()[Label]
	if !labeled {
		return deadline.Period{}, false, nil
	}
	for _, label := range controlPlane {
		if _, is := node.GetLabels()[label]; is {
			return deadline.Period{}, false, fmt.Errorf("the label %s is ignored, because the node has the label %s: "+
				"a control plane node is not terminated", Label, label)
		}
	}
	if period, err = deadline.ParsePeriod(text); err != nil {
		return deadline.Period{}, false, fmt.Errorf("label %s: %w", Label, err)
	}
	return period, true, nil
}

// Requested returns when the object was deleted, the zero time if it was not.
func Requested(object metav1.Object) time.Time {
	return graceful.Of(object).Requested()
}

// Protected reports whether the object has our finalizer.
func Protected(object metav1.Object) bool {
	for _, finalizer := range object.GetFinalizers() {
		if finalizer == Finalizer {
			return true
		}
	}
	return false
}

// FirstAction returns when our taint was added, the zero time if the node does not have the taint. A taint without a
// time counts from the time that the caller gives, which is when the taint was seen.
func FirstAction(node *v1.Node, seen time.Time) time.Time {
	for _, taint := range node.Spec.Taints {
		if taint.Key == DisruptedTaint && taint.Effect == v1.TaintEffectNoSchedule {
			if taint.TimeAdded == nil {
				return seen
			}
			return taint.TimeAdded.Time
		}
	}
	return time.Time{}
}

// OutOfService returns whether the node has our taint out-of-service, and whether it has one that others set.
func OutOfService(node *v1.Node) (ours, others bool) {
	for _, taint := range node.Spec.Taints {
		if taint.Key == v1.TaintNodeOutOfService && taint.Value == OutOfServiceValue {
			ours = true
		} else if taint.Key == v1.TaintNodeOutOfService {
			others = true
		}
	}
	return ours, others
}
