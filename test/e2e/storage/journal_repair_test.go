package storage

import (
	"maps"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// leaseEdits are edits of a journal Lease by another client.
var leaseEdits = map[string]func(*coordinationv1.Lease){
	"entries removed": func(l *coordinationv1.Lease) {
		maps.DeleteFunc(l.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, journal.EntryPrefix) })
	},
	"entry replaced": func(l *coordinationv1.Lease) {
		for key := range l.Annotations {
			if strings.HasPrefix(key, journal.EntryPrefix) {
				l.Annotations[key] = "garbage"
			}
		}
	},
	"all annotations removed": func(l *coordinationv1.Lease) { l.Annotations = nil },
	"custody removed":         func(l *coordinationv1.Lease) { delete(l.Annotations, journal.CustodyAnnotation) },
	"owner changed":           func(l *coordinationv1.Lease) { l.Annotations[journal.OwnerAnnotation] = "other.example.com" },
	"label removed":           func(l *coordinationv1.Lease) { l.Labels = nil },
	"holder cleared":          func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil },
	"holder and label gone":   func(l *coordinationv1.Lease) { l.Spec.HolderIdentity, l.Labels = ptr.To(""), nil },
}

// sameJournal reports whether two Leases hold the same journal.
func sameJournal(a, b *coordinationv1.Lease) bool {
	return journal.HolderOf(a) == journal.HolderOf(b) && maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(journal.Encoded(a), journal.Encoded(b)) &&
		a.Annotations[journal.OwnerAnnotation] == b.Annotations[journal.OwnerAnnotation] &&
		(a.Annotations[journal.CustodyAnnotation] == "") == (b.Annotations[journal.CustodyAnnotation] == "")
}

func TestEditedLeaseIsWrittenAgainAtOnce(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	edits := maps.Clone(leaseEdits)
	edits["deleted"] = nil
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			j := enterJournaled(t)
			j.start()
			claim := j.abandon("claim")
			before := j.leases(journal.KindActive)[0]
			edited := time.Now()
			if edit == nil {
				j.Must(j.Client.CoordinationV1().Leases(before.Namespace).Delete(j.Ctx, before.Name, metav1.DeleteOptions{}),
					"delete lease")
			} else {
				j.edit(edit)
			}
			j.Until("the lease is as before", func() bool {
				now := j.leases(journal.KindActive)
				return len(now) == 1 && now[0].ResourceVersion != before.ResourceVersion && sameJournal(&now[0], &before)
			})
			t.Logf("written again after %s", time.Since(edited))
			j.kill() // the next process must find every entry
			j.start()
			j.expectFinished(claim)
		})
	}
}

// The Lease is edited between a crash and the next start. The entry itself stays.
func TestEditedLeaseOfDeadProcessIsRead(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for _, name := range []string{"label removed", "holder cleared", "holder and label gone"} {
		t.Run(name, func(t *testing.T) {
			j := enterJournaled(t)
			j.start()
			claim := j.abandon("claim")
			j.kill()
			j.edit(leaseEdits[name])
			j.start()
			j.expectFinished(claim)
		})
	}
}

// An entry without custody may be older than another leader.
func TestEntryWithoutCustodyIsUnresolved(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for _, name := range []string{"custody removed", "custody and owner removed"} {
		t.Run(name, func(t *testing.T) {
			j := enterJournaled(t, elect...)
			j.start()
			claim := j.abandon("claim")
			j.kill()
			j.mock.Server.ClearFaults()
			before := j.called("CreateVolume")
			j.edit(func(l *coordinationv1.Lease) {
				delete(l.Annotations, journal.CustodyAnnotation)
				if name != "custody removed" {
					delete(l.Annotations, journal.OwnerAnnotation)
				}
			})
			j.expireLeader(0)
			j.start()
			if entry := j.awaitEntries(journal.KindUnresolved, 1)[0]; entry.UID != claim.UID || !entry.CustodyBroken {
				t.Errorf("the entry is %+v", entry)
			}
			j.awaitEntries(journal.KindActive, 0)
			j.expectVolumes(1)
			if calls := j.called("CreateVolume") - before + j.called("DeleteVolume"); calls != 0 {
				t.Errorf("the driver was called %d times", calls)
			}
			j.approve(claim.UID)
			j.expectFinished(claim)
		})
	}
}
