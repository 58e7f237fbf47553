package reclaim

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Annotation on a volume that was deleted before its finalizer was added: the provisioner
// writes it, and the pv-controller keeps pv-protection while its value is "pending".
const (
	Annotation        = "exeunt.io/reclaim"
	AnnotationPending = "pending"
	AnnotationDone    = "done"
)

// Status is the value of the annotation.
type Status int

const (
	// StatusNone: the volume has no annotation, or one with an unknown value.
	StatusNone Status = iota
	// StatusPending: the driver has not deleted the volume yet.
	StatusPending
	// StatusDone: the driver has deleted the volume.
	StatusDone
)

// StatusOf returns the value of the volume's annotation.
func StatusOf(volume *v1.PersistentVolume) Status {
	switch volume.Annotations[Annotation] {
	case AnnotationPending:
		return StatusPending
	case AnnotationDone:
		return StatusDone
	}
	return StatusNone
}

// String returns the name of the value.
func (s Status) String() string { return enum.Name(s, "None", "Pending", "Done") }
