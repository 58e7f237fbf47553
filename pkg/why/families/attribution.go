package families

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Record is what managedFields know of a finalizer.
type Record int

const (
	// NoFields: the object has no managedFields; somebody emptied them.
	NoFields Record = iota
	// NoManager: no manager owns the finalizer. Admission or the DELETE request added it, or
	// the record was removed.
	NoManager
	// Managed: at least one manager owns the finalizer.
	Managed
)

// String returns the name of the value.
func (r Record) String() string {
	return enum.Name(r, "noFields", "noManager", "managed")
}

// Attribution is what the managedFields of an object say about one of its finalizers. It is
// a hint, never a proof: who sets a finalizer again becomes its manager.
type Attribution struct {
	Record Record
	// Managers own the finalizer, the latest writer first.
	Managers []Manager
	// Others are managers of other fields of the object, the latest writer first. A program that
	// keeps removing the finalizer is among them.
	Others []Manager
}

// Manager is a field manager that owns a finalizer.
type Manager struct {
	Name        string
	Operation   metav1.ManagedFieldsOperationType
	Subresource string
	// LastWrite is when the manager last wrote any field of the object, or zero. The
	// finalizer may be older.
	LastWrite time.Time
}

// Attribute returns who owns the finalizer by the managedFields of its object.
func Attribute(fields []metav1.ManagedFieldsEntry, finalizer string) Attribution {
	if len(fields) == 0 {
		return Attribution{Record: NoFields}
	}
	attribution := Attribution{Record: NoManager}
	for _, entry := range fields {
		manager := Manager{Name: entry.Manager, Operation: entry.Operation, Subresource: entry.Subresource}
		if entry.Time != nil {
			manager.LastWrite = entry.Time.Time
		}
		if ownsFinalizer(entry, finalizer) {
			attribution.Record = Managed
			attribution.Managers = append(attribution.Managers, manager)
			continue
		}
		attribution.Others = append(attribution.Others, manager)
	}
	latestFirst(attribution.Managers)
	latestFirst(attribution.Others)
	return attribution
}

func latestFirst(managers []Manager) {
	slices.SortStableFunc(managers, func(a, b Manager) int { return b.LastWrite.Compare(a.LastWrite) })
}

// ownsFinalizer reports whether the entry has the finalizer among its fields.
func ownsFinalizer(entry metav1.ManagedFieldsEntry, finalizer string) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Metadata struct {
			Finalizers map[string]json.RawMessage `json:"f:finalizers"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	for key := range fields.Metadata.Finalizers {
		var value string
		quoted, isValue := strings.CutPrefix(key, "v:")
		if isValue && json.Unmarshal([]byte(quoted), &value) == nil && value == finalizer {
			return true
		}
	}
	return false
}

// Text returns sentences for the evidence, one for each manager, or one that says why there
// is none.
func (a Attribution) Text() []string {
	if a.Record == NoFields {
		return []string{"managedFields are empty: nothing records who set the finalizer"}
	}
	if a.Record == NoManager {
		return []string{"no manager owns the finalizer: admission or the DELETE request added it, or its record was removed"}
	}
	texts := make([]string, len(a.Managers))
	for i, manager := range a.Managers {
		texts[i] = manager.Text()
	}
	return texts
}

// Text returns "set by M, which last wrote at T", and what the name of the manager is worth.
func (m Manager) Text() string {
	text := "set by " + m.Name
	if m.Name == "" {
		text = "set by a manager without a name"
	}
	if m.Subresource != "" {
		text += " through /" + m.Subresource
	}
	if m.LastWrite.IsZero() {
		text += ", at an unknown time"
	} else {
		text += ", which last wrote at " + m.LastWrite.UTC().Format(time.RFC3339)
	}
	if note := m.Agent().note(); note != "" {
		text += "; " + note
	}
	return text
}
