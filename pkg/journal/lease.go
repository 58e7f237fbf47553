package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations and the label of the journal's Leases.
const (
	// EntryPrefix and the UID of a claim are the key of an entry.
	EntryPrefix = "exeunt.io/e."
	// OwnerAnnotation names the driver, and with node deployment the node.
	OwnerAnnotation = "exeunt.io/journal-of"
	// CustodyAnnotation is the term of the last write.
	CustodyAnnotation = "exeunt.io/journal-custody"
	// UnansweredAnnotation is the number of writes of the Lease that had no answer. The API server takes an
	// update that changes nothing for no write, so this changes.
	UnansweredAnnotation = "exeunt.io/journal-unanswered"
	// OffAnnotation is on an active Lease whose writer writes no new entries: calls of that term may have none.
	OffAnnotation = "exeunt.io/journal-off"
	// KindLabel is on every Lease of a journal; its value is a Kind.
	KindLabel = "exeunt.io/journal"
)

// Kind is what a Lease of a journal holds.
type Kind string

const (
	// KindActive: entries that the leader works on.
	KindActive Kind = "active"
	// KindUnresolved: unresolved entries, for an administrator.
	KindUnresolved Kind = "unresolved"
)

// Journal identifies the journal of one driver, or of one driver on one node.
type Journal struct {
	Namespace, Driver, Node string
}

// Owner is the value of OwnerAnnotation.
func (j Journal) Owner() string {
	if j.Node == "" {
		return j.Driver
	}
	return j.Driver + "/" + j.Node
}

// maxBase leaves room for the end of the name of a Lease, which has at most 253
// characters.
const maxBase = 220

var (
	notInName  = regexp.MustCompile(`[^a-z0-9.-]+`)
	notInLabel = regexp.MustCompile(`[.-]*\.[.-]*`)
	hashed     = regexp.MustCompile(`(^|-)[0-9a-f]{8}$`)
)

// sanitized returns the name as a DNS subdomain, or "".
func sanitized(name string) string {
	name = notInName.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(notInLabel.ReplaceAllString(name, "."), ".-")
}

// base is what the names of all Leases of the journal begin with. Two journals have
// two bases: it is the plain name of the driver, which does not look hashed, or it
// ends in a hash of driver and node.
func (j Journal) base() string {
	plain := sanitized(j.Driver + "-" + j.Node)
	if j.Node == "" && plain != "" && plain == j.Driver && len(plain) <= maxBase && !hashed.MatchString(plain) {
		return plain
	}
	sum := sha256.Sum256([]byte(j.Driver + "\x00" + j.Node))
	short := strings.TrimRight(plain[:min(len(plain), maxBase-9)], ".-")
	return strings.TrimLeft(short+"-"+hex.EncodeToString(sum[:4]), "-")
}

// LeaseName returns the name of the journal's Lease with that number.
func (j Journal) LeaseName(kind Kind, number int) string {
	word := "journal"
	if kind == KindUnresolved {
		word = "unresolved"
	}
	return j.base() + "-" + word + "-" + strconv.Itoa(number)
}

// KindOf returns what a Lease of this journal holds, and its number; false for any
// other Lease. The name counts and not the label, which any user can remove. A Lease
// without an owner counts if it has entries.
func (j Journal) KindOf(lease *coordinationv1.Lease) (kind Kind, number int, ours bool) {
	number, err := strconv.Atoi(lease.Name[strings.LastIndexByte(lease.Name, '-')+1:])
	if err != nil || lease.Namespace != j.Namespace {
		return "", 0, false
	}
	owner, named := lease.Annotations[OwnerAnnotation]
	if named && owner != j.Owner() || !named && len(Encoded(lease)) == 0 {
		return "", 0, false
	}
	for _, kind := range []Kind{KindActive, KindUnresolved} {
		if lease.Name == j.LeaseName(kind, number) {
			return kind, number, true
		}
	}
	return "", 0, false
}

// Lease returns the object with these encoded entries. managedFields are cleared:
// they would be as large as the entries.
func (j Journal) Lease(kind Kind, number int, holder string, custody Custody,
	entries map[types.UID]string) *coordinationv1.Lease {
	annotations := map[string]string{OwnerAnnotation: j.Owner(), CustodyAnnotation: custody.String()}
	for uid, text := range entries {
		annotations[EntryPrefix+string(uid)] = text
	}
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, Name: j.LeaseName(kind, number), Annotations: annotations,
			Labels: map[string]string{KindLabel: string(kind)}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}
}

// Encoded returns the encoded entries of a Lease.
func Encoded(lease *coordinationv1.Lease) map[types.UID]string {
	entries := map[types.UID]string{}
	for key, text := range lease.Annotations {
		if uid, is := strings.CutPrefix(key, EntryPrefix); is {
			entries[types.UID(uid)] = text
		}
	}
	return entries
}

// Entries returns the entries of a Lease, sorted by claim UID, and the UIDs whose
// annotation cannot be decoded.
func Entries(lease *coordinationv1.Lease) (entries []Entry, broken []types.UID) {
	encoded := Encoded(lease)
	for _, uid := range slices.Sorted(maps.Keys(encoded)) {
		entry, err := Decode(uid, encoded[uid])
		if err != nil {
			broken = append(broken, uid)
			continue
		}
		entries = append(entries, entry)
	}
	return entries, broken
}

// HolderOf returns the last writer of the Lease, "" if it is not named.
func HolderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// Find returns the journal that a Lease belongs to by its owner annotation and its
// name, what it holds, and its number; false for any other Lease. A provisioner may have
// a "/" in its name, such as rancher.io/local-path; the name of the Lease tells which part
// is a node.
func Find(lease *coordinationv1.Lease) (j Journal, kind Kind, number int, is bool) {
	owner, named := lease.Annotations[OwnerAnnotation]
	if !named {
		return Journal{}, "", 0, false
	}
	possible := []Journal{{Namespace: lease.Namespace, Driver: owner}}
	if slash := strings.LastIndexByte(owner, '/'); slash >= 0 {
		possible = append(possible, Journal{Namespace: lease.Namespace, Driver: owner[:slash], Node: owner[slash+1:]})
	}
	for _, j := range possible {
		if kind, number, is := j.KindOf(lease); is {
			return j, kind, number, true
		}
	}
	return Journal{}, "", 0, false
}

// Custody identifies the term in which a Lease of the journal was written.
type Custody struct {
	// LeaderLease is the UID of the leader Lease, "" without leader election.
	LeaderLease types.UID `json:"leaderLease,omitempty"`
	// Transitions is leaseTransitions of the leader Lease in that term.
	Transitions int32 `json:"transitions,omitempty"`
	// Written is the time of the last write, in seconds since 1970. It counts only
	// without leader election.
	Written int64 `json:"written,omitempty"`
}

// MaxCustodyAge is how old the journal of a process without leader election may be for
// its custody to be unbroken.
const MaxCustodyAge = 10 * time.Minute

// Unbroken reports whether no other program can have led between the recorded term
// and the current one: the same leader Lease, which changed hands at most once.
func Unbroken(recorded, current Custody) bool {
	switch {
	case recorded.LeaderLease != current.LeaderLease:
		return false
	case current.LeaderLease == "":
		age := current.Written - recorded.Written // in seconds; what overflows is negative
		return recorded.Written > 0 && age >= 0 && age <= int64(MaxCustodyAge/time.Second)
	}
	changes := int64(current.Transitions) - int64(recorded.Transitions)
	return changes == 0 || changes == 1
}

// Precedes reports whether the term is certainly earlier than the other one.
func (c Custody) Precedes(other Custody) bool {
	return c.LeaderLease != "" && c.LeaderLease == other.LeaderLease && c.Transitions < other.Transitions
}

// String returns the custody as the value of an annotation.
func (c Custody) String() string {
	text, err := json.Marshal(c)
	if err != nil { // strings and integers only
		return ""
	}
	return string(text)
}

// ParseCustody is the inverse of String; what cannot be read matches no term.
func ParseCustody(text string) Custody {
	var c Custody
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.LeaderLease == "" && c.Written <= 0 {
		return Custody{LeaderLease: "unknown"}
	}
	return c
}
