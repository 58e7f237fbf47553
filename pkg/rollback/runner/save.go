package runner

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// saveEntries writes the Leases to a new file, and returns once the file is on the disk. The
// file holds no secrets, as the journal holds none.
func saveEntries(name string, leases []*coordinationv1.Lease, now time.Time) (string, error) {
	if name == "" {
		name = "exeunt-journal-" + now.UTC().Format("20060102T150405Z") + ".yaml"
	}
	text, err := savedText(leases, now)
	if err != nil {
		return "", fmt.Errorf("encode open entries: %w", err)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return "", fmt.Errorf("%s exists and is never overwritten: nothing was changed; name another file by --save", name)
	case err != nil:
		return "", fmt.Errorf("create the file for open entries, nothing was changed: %w", err)
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", fmt.Errorf("write %s, nothing was changed: %w", name, errors.Join(err, os.Remove(name)))
	}
	return name, nil
}

// savedText returns a manifest of the Leases, with a comment for each entry.
func savedText(leases []*coordinationv1.Lease, now time.Time) ([]byte, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "# Open entries of the provisioning journal, saved by \"exeunt rollback\" at %s.\n",
		now.UTC().Format(time.RFC3339))
	text.WriteString("# Each may stand for a volume in the storage system that no PersistentVolume records.\n" +
		"# To give them back to a provisioner of Exeunt: kubectl create -f FILE, then start it.\n#\n")
	manifests := make([]any, len(leases))
	for i, lease := range leases {
		owner, kind, _, _ := journal.Find(lease)
		entries, broken := journal.Entries(lease)
		for _, entry := range entries {
			text.WriteString("# " + terminal.Printable(describe(owner.Driver, kind, entry)) + "\n")
		}
		for _, uid := range broken {
			text.WriteString("# " + terminal.Printable(fmt.Sprintf("driver %s: claim UID %s, unreadable", owner.Driver, uid)) +
				"\n")
		}
		manifests[i] = &coordinationv1.Lease{
			TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name, Labels: lease.Labels,
				Annotations: lease.Annotations},
			Spec: lease.Spec,
		}
	}
	list, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": manifests})
	return append([]byte(text.String()), list...), err
}

// describe says which volume the entry may stand for.
func describe(driver string, kind journal.Kind, entry journal.Entry) string {
	text := fmt.Sprintf("driver %s: volume %s for claim %s/%s, UID %s, %s", driver, entry.VolumeName(), entry.Namespace,
		entry.Name, entry.UID, kind)
	if entry.Handle != "" {
		text += ", handle " + entry.Handle
	}
	if entry.Unresolved != nil {
		text += ": " + entry.Unresolved.Reason
	}
	return text
}
