package reclaim_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

const (
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	migratedTo    = "pv.kubernetes.io/migrated-to"
)

// made returns a volume with the annotations, with a CSI source if a driver is named.
func made(csiDriver string, annotations map[string]string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	if csiDriver != "" {
		volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: csiDriver}
	}
	return volume
}

func TestOwns(t *testing.T) {
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		want   bool
	}{
		"dynamic, by the driver":                      {made("d", map[string]string{provisionedBy: "d"}), true},
		"dynamic, by a plugin migrated to the driver": {made("", map[string]string{provisionedBy: "kubernetes.io/x", migratedTo: "d"}), true},
		"dynamic, by another driver":                  {made("d", map[string]string{provisionedBy: "other"}), false},
		"dynamic, by a plugin that is not migrated":   {made("", map[string]string{provisionedBy: "kubernetes.io/x"}), false},
		"static, of the driver":                       {made("d", nil), true},
		"static, of another driver":                   {made("other", nil), false},
		"static, migrated to the driver":              {made("", map[string]string{migratedTo: "d"}), true},
		"static, migrated to another driver":          {made("", map[string]string{migratedTo: "other"}), false},
		"static, of an in-tree plugin":                {made("", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Owns("d", tc.volume); got != tc.want {
				t.Errorf("Owns = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestOriginOf(t *testing.T) {
	for name, tc := range map[string]struct {
		provisioner       string
		migrated, deletes bool
		want              Origin
	}{
		"nobody provisioned it":               {"", false, false, Static},
		"a person, of a migrated plugin":      {"", true, false, StaticMigrated},
		"an external name":                    {"d", false, false, ByExternal},
		"an in-tree plugin that can delete":   {"kubernetes.io/host-path", false, true, ByPlugin},
		"an in-tree name without a deleter":   {"kubernetes.io/rbd", false, false, ByMissingPlugin},
		"an in-tree plugin migrated to CSI":   {"kubernetes.io/gce-pd", true, false, ByMigratedPlugin},
		"an in-tree plugin migrated and here": {"kubernetes.io/gce-pd", true, true, ByMigratedPlugin},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{provisionedBy: tc.provisioner}
			if tc.provisioner == "" {
				annotations = nil
			}
			if got := OriginOf(made("", annotations), tc.migrated, tc.deletes); got != tc.want {
				t.Errorf("OriginOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAStaticCSIVolumeIsNotMigratedWhateverIsSaid(t *testing.T) {
	if got := OriginOf(made("d", nil), true, false); got != Static {
		t.Errorf("OriginOf = %v, want %v", got, Static)
	}
}

func TestMigratedToOf(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		driver      string
		want        MigratedTo
	}{
		"no annotation":                 {nil, "d", MigratedNowhere},
		"the right driver":              {map[string]string{migratedTo: "d"}, "d", MigratedRight},
		"another driver":                {map[string]string{migratedTo: "x"}, "d", MigratedWrong},
		"migrated to none, yet it says": {map[string]string{migratedTo: "d"}, "", MigratedWrong},
		"an annotation without a name":  {map[string]string{migratedTo: ""}, "", MigratedWrong},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MigratedToOf(made("", tc.annotations), tc.driver); got != tc.want {
				t.Errorf("MigratedToOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPluginOf(t *testing.T) {
	for name, tc := range map[string]struct {
		volume            *v1.PersistentVolume
		migrated, deletes bool
		want              Plugin
	}{
		"dynamic, by an external name": {made("d", map[string]string{provisionedBy: "d"}), false, false, External},
		"static CSI":                   {made("d", nil), false, false, External},
		"migrated":                     {made("", map[string]string{provisionedBy: "kubernetes.io/gce-pd", migratedTo: "d"}), false, true, Migrated},
		"migrated, not annotated yet":  {made("", map[string]string{provisionedBy: "kubernetes.io/gce-pd"}), true, true, Migrated},
		"in-tree, with a plugin":       {made("", map[string]string{provisionedBy: "kubernetes.io/host-path"}), false, true, Deletes},
		"in-tree, without":             {made("", map[string]string{provisionedBy: "kubernetes.io/rbd"}), false, false, Missing},
		"static in-tree, without":      {made("", nil), false, false, Missing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PluginOf(tc.volume, tc.migrated, tc.deletes); got != tc.want {
				t.Errorf("PluginOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestThePolicyMayChangeWhileBound(t *testing.T) {
	s := State{Honor: true, Owned: true, Phase: storage.PhaseBound, Claim: storage.ClaimUnread, Policy: storage.PolicyDelete, Protected: true}
	for _, change := range []struct {
		policy storage.Policy
		want   Action
	}{{storage.PolicyDelete, Wait}, {storage.PolicyRetain, Unprotect}, {storage.PolicyRetain, Wait}, {storage.PolicyDelete, Protect}, {storage.PolicyDelete, Wait}} {
		s.Policy = change.policy
		action := Decide(s).Action
		if action != change.want {
			t.Fatalf("%+v: %v, want %v", s, action, change.want)
		}
		s.Protected = s.Protected && action != Unprotect || action == Protect
	}
}
