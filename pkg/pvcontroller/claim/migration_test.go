package claim

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestAClaimSaysWhoHasTakenOverFromThePluginThatWasAsked(t *testing.T) {
	const asked, beta, to = storage.AnnStorageProvisioner, storage.AnnBetaStorageProvisioner, storage.AnnMigratedTo
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string // the patch, "" for none
	}{
		"nobody was asked":                       {map[string]string{to: "example.com/kept"}, ""},
		"an external provisioner was asked":      {map[string]string{asked: "example.com/driver"}, ""},
		"a plugin that is not migrated":          {map[string]string{asked: "kubernetes.io/host-path"}, ""},
		"a migrated plugin":                      {map[string]string{asked: "kubernetes.io/gce-pd"}, "pd.csi.storage.gke.io"},
		"a migrated plugin, by the beta name":    {map[string]string{beta: "kubernetes.io/aws-ebs"}, "ebs.csi.aws.com"},
		"the newer name wins":                    {map[string]string{asked: "example.com/driver", beta: "kubernetes.io/aws-ebs"}, ""},
		"it is said already":                     {map[string]string{asked: "kubernetes.io/gce-pd", to: "pd.csi.storage.gke.io"}, ""},
		"it is said wrongly":                     {map[string]string{asked: "kubernetes.io/gce-pd", to: "example.com/wrong"}, "pd.csi.storage.gke.io"},
		"it is said where nobody has taken over": {map[string]string{asked: "example.com/driver", to: "pd.csi.storage.gke.io"}, "remove"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claimant()
			claim.Annotations = tc.annotations
			got, o := "", world(t).Observer.observe(claim, nil, false)
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
