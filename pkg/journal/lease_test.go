package journal_test

import (
	"maps"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	. "github.com/exeunt-io/exeunt/pkg/journal"
)

// journals are pairs of drivers and nodes whose plain names are alike.
func journals() []Journal {
	var all []Journal
	long := strings.Repeat("long-name.", 24)
	drivers := []string{
		"ebs.csi.aws.com", "EBS.csi.aws.com", "ebs-csi-aws-com", "a", "a-b", "a.b", "a_b", "a-b-c", "a..b", "a.-b", "-a",
		"a-", ".", "a/b", "a/b/c", "rancher.io/local-path", "deadbeef", "a-deadbeef", "A", "a-journal-0", "a-unresolved",
		long + "a", long + "b", "",
	}
	nodes := []string{"", "a", "b", "b-c", "c", "B", "node-1.example.com", "-", long, "journal-0"}
	for _, driver := range drivers {
		for _, node := range nodes {
			all = append(all, Journal{Namespace: "ns", Driver: driver, Node: node})
		}
	}
	return all
}

func TestJournalsNeverShareALease(t *testing.T) {
	owners := map[string]Journal{}
	all := journals()
	for _, j := range all { // a driver may be called like the Leases of another one
		base := strings.TrimSuffix(j.LeaseName(KindActive, 0), "-journal-0")
		all = append(all, Journal{Namespace: "ns", Driver: base}, Journal{Namespace: "ns",
			Driver: j.LeaseName(KindActive, 0)})
	}
	for _, j := range all {
		for _, kind := range []Kind{KindActive, KindUnresolved} {
			for _, number := range []int{0, 1, 10, 123456789} {
				name := j.LeaseName(kind, number)
				if other, taken := owners[name]; taken && other != j {
					t.Errorf("%+v and %+v share Lease %s", other, j, name)
				}
				owners[name] = j
				if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
					t.Errorf("%+v: %q is no name of a Lease: %v", j, name, problems)
				}
			}
		}
	}
}

func TestEveryLeaseOfAJournalIsRecognized(t *testing.T) {
	for _, j := range journals() {
		for _, kind := range []Kind{KindActive, KindUnresolved} {
			for _, number := range []int{0, 10} {
				lease := j.Lease(kind, number, "pod", Custody{Written: 1}, map[types.UID]string{claimUID(1): "x"})
				if gotKind, gotNumber, ours := j.KindOf(lease); !ours || gotKind != kind || gotNumber != number {
					t.Errorf("%s is kind %s number %d, ours %v", lease.Name, gotKind, gotNumber, ours)
				}
				for i, other := range journals() {
					if i%7 != number%7 {
						continue // each of them for some Leases
					}
					if _, _, ours := other.KindOf(lease); ours && other != j {
						t.Errorf("%s of %+v counts as one of %+v", lease.Name, j, other)
					}
				}
			}
		}
	}
}

func TestOtherLeasesAreNotOfTheJournal(t *testing.T) {
	j := Journal{Namespace: "ns", Driver: "a"}
	lease := func(namespace, name string, annotations map[string]string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Annotations: annotations}}
	}
	entry := map[string]string{EntryPrefix + "uid": "x"}
	for name, tc := range map[string]struct {
		lease *coordinationv1.Lease
		want  bool
	}{
		"its own":                        {lease("ns", "a-journal-0", map[string]string{OwnerAnnotation: "a"}), true},
		"no owner, but entries":          {lease("ns", "a-journal-0", entry), true},
		"a leader Lease of its name":     {lease("ns", "a-journal-0", nil), false},
		"of another owner":               {lease("ns", "a-journal-0", map[string]string{OwnerAnnotation: "b"}), false},
		"in another namespace":           {lease("other", "a-journal-0", map[string]string{OwnerAnnotation: "a"}), false},
		"a number with zeros":            {lease("ns", "a-journal-00", map[string]string{OwnerAnnotation: "a"}), false},
		"a negative number":              {lease("ns", "a-journal--1", map[string]string{OwnerAnnotation: "a"}), false},
		"a number with a sign":           {lease("ns", "a-journal-+1", map[string]string{OwnerAnnotation: "a"}), false},
		"a number that is too large":     {lease("ns", "a-journal-99999999999999999999", map[string]string{OwnerAnnotation: "a"}), false},
		"no number":                      {lease("ns", "a-journal-", map[string]string{OwnerAnnotation: "a"}), false},
		"no dash":                        {lease("ns", "7", map[string]string{OwnerAnnotation: "a"}), false},
		"the leader Lease of the driver": {lease("ns", "a", map[string]string{OwnerAnnotation: "a"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, ours := j.KindOf(tc.lease); ours != tc.want {
				t.Errorf("ours = %v, want %v", ours, tc.want)
			}
		})
	}
}

func TestJournalIsFoundByItsLease(t *testing.T) {
	for _, j := range journals() {
		if j.Driver == "" { // no driver is called so
			continue
		}
		lease := j.Lease(KindUnresolved, 3, "pod", Custody{}, nil)
		got, kind, number, is := Find(lease)
		if !is || got != j || kind != KindUnresolved || number != 3 {
			t.Errorf("Lease %s belongs to %+v, %s, %d, %v; want %+v", lease.Name, got, kind, number, is, j)
		}
		lease.Labels = nil
		if _, _, _, is := Find(lease); !is {
			t.Errorf("Lease %s without its label is not found", lease.Name)
		}
		lease.Name = "x" + lease.Name
		if _, _, _, is := Find(lease); is {
			t.Errorf("Lease %s is found", lease.Name)
		}
		delete(lease.Annotations, OwnerAnnotation)
		if _, _, _, is := Find(lease); is {
			t.Error("a Lease without an owner is found")
		}
	}
}

func TestLeaseHasItsEntries(t *testing.T) {
	j := Journal{Namespace: "ns", Driver: "a", Node: "n"}
	texts := map[types.UID]string{claimUID(1): mustEncode(t, newEntry(1)), claimUID(2): mustEncode(t, newEntry(2)),
		"forged": "?"}
	lease := j.Lease(KindActive, 0, "pod_exeunt", Custody{LeaderLease: "l", Transitions: 3}, texts)
	if !maps.Equal(Encoded(lease), texts) {
		t.Errorf("texts = %v", Encoded(lease))
	}
	entries, broken := Entries(lease)
	if len(entries) != 2 || len(broken) != 1 || broken[0] != "forged" || entries[0].UID >= entries[1].UID {
		t.Errorf("entries %+v, broken %v", entries, broken)
	}
	if holder := HolderOf(lease); holder != "pod_exeunt" || HolderOf(&coordinationv1.Lease{}) != "" {
		t.Errorf("holder = %q", holder)
	}
	if got := ParseCustody(lease.Annotations[CustodyAnnotation]); got != (Custody{LeaderLease: "l", Transitions: 3}) {
		t.Errorf("custody = %+v", got)
	}
	for key := range lease.Annotations {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			t.Errorf("annotation %q: %v", key, problems)
		}
	}
}

func TestLongestPlainDriverNameIsNotHashed(t *testing.T) {
	driver := strings.Repeat("d", 220)
	if got, want := (Journal{Driver: driver}).LeaseName(KindActive, 0), driver+"-journal-0"; got != want {
		t.Errorf("LeaseName = %s, want %s", got, want)
	}
}

func TestLeaseWithoutOwnerIsOfNoKnownJournal(t *testing.T) {
	lease := Journal{Namespace: "ns"}.Lease(KindActive, 0, "holder", Custody{}, map[types.UID]string{"uid": "text"})
	delete(lease.Annotations, OwnerAnnotation)
	if found, _, _, is := Find(lease); is {
		t.Errorf("Find = %+v, want none", found)
	}
}
