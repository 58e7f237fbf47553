package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/model/process"
	"github.com/exeunt-io/exeunt/internal/model/programs"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// newJournal is a Lease of the journal without entries, of the leader with the number.
func newJournal(term int32) creation {
	lease := journal.Journal{Namespace: programs.Namespace, Driver: process.DriverName}.Lease(
		journal.KindActive, 0, "pod-of-a-leader"+controller.IdentitySuffix, journal.Custody{LeaderLease: programs.LeaderLease, Transitions: term}, nil)
	lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	return creation{leasesPath, lease}
}
