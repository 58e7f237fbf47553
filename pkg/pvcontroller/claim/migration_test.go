package claim

import (
	"cmp"
	"encoding/json"
	"testing"

	v1 "k8s.io/api/core/v1"

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
			c, claim := world(t), claimant()
			claim.Annotations = tc.annotations
			got := ""
			if c.mismarked(claim) {
				got = marked(t, c, claim)
			}
			if got != tc.want {
				t.Errorf("migrated-to becomes %q, want %q", got, tc.want)
			}
		})
	}
}

// marked returns what the patch makes of the annotation, "remove" if it takes it off.
func marked(t *testing.T, c *Controller, claim *v1.PersistentVolumeClaim) string {
	t.Helper()
	body, err := c.markMigrated(claim).Bytes()
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
