package claim

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestMigratedToNamesReplacingDriver(t *testing.T) {
	const requested, beta, to = storage.AnnStorageProvisioner, storage.AnnBetaStorageProvisioner, storage.AnnMigratedTo
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string // the patch, "" for none
	}{
		"no requested provisioner":           {map[string]string{to: "example.com/kept"}, ""},
		"external provisioner":               {map[string]string{requested: "example.com/driver"}, ""},
		"plugin that is not migrated":        {map[string]string{requested: "kubernetes.io/host-path"}, ""},
		"migrated plugin":                    {map[string]string{requested: "kubernetes.io/gce-pd"}, "pd.csi.storage.gke.io"},
		"migrated plugin, beta annotation":   {map[string]string{beta: "kubernetes.io/aws-ebs"}, "ebs.csi.aws.com"},
		"both annotations":                   {map[string]string{requested: "example.com/driver", beta: "kubernetes.io/aws-ebs"}, ""},
		"right annotation":                   {map[string]string{requested: "kubernetes.io/gce-pd", to: "pd.csi.storage.gke.io"}, ""},
		"wrong annotation":                   {map[string]string{requested: "kubernetes.io/gce-pd", to: "example.com/wrong"}, "pd.csi.storage.gke.io"},
		"annotation without replaced plugin": {map[string]string{requested: "example.com/driver", to: "pd.csi.storage.gke.io"}, "remove"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := newClaim()
			claim.Annotations = tc.annotations
			got, o := "", emptyController(t).Observer.observe(claim, nil, false)
			if o.state.MigratedToWrong {
				got = migratedTo(t, o)
			}
			if got != tc.want {
				t.Errorf("migrated-to becomes %q, want %q", got, tc.want)
			}
		})
	}
}

// migratedTo returns the value that the patch sets, "remove" if it removes the annotation.
func migratedTo(t *testing.T, o *observation) string {
	t.Helper()
	body, err := setMigratedTo(o).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var operations []struct{ Op, Path, Value string }
	if err := json.Unmarshal(body, &operations); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	last := operations[len(operations)-1]
	if last.Path != "/metadata/annotations/"+patch.Escape(storage.AnnMigratedTo) {
		t.Errorf("%s was changed", last.Path)
	}
	return cmp.Or(last.Value, last.Op)
}
