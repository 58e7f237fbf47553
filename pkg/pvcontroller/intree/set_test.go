package intree_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// migration is a migration that the test switches on and off.
type migrations map[string]string

func (m migrations) Driver(plugin string) (string, bool) {
	driver, migrated := m[plugin]
	return driver, migrated
}

func (m migrations) PluginOf(volume *v1.PersistentVolume) string {
	if volume.Spec.HostPath != nil {
		return intree.HostPathName
	}
	return ""
}

// by returns the volume as provisioned by the plugin.
func by(plugin string, volume *v1.PersistentVolume) *v1.PersistentVolume {
	volume.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: plugin}
	return volume
}

func export(server, path string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.NFS = &v1.NFSVolumeSource{Server: server, Path: path}
	return volume
}

func plugins(m migrations) *intree.Set {
	return intree.NewSet(m, &intree.HostPath{Root: "/tmp"}, &intree.NFS{})
}

func TestAPluginIsFoundByNameOrBySource(t *testing.T) {
	set := plugins(nil)
	for name, tc := range map[string]struct {
		volume            *v1.PersistentVolume
		deletes, recycles bool
	}{
		"static host path":                         {at("/tmp/a"), true, true},
		"host path by its plugin":                  {by(intree.HostPathName, at("/tmp/a")), true, true},
		"host path by a plugin that is not here":   {by("kubernetes.io/rbd", at("/tmp/a")), false, true},
		"host path by an external provisioner":     {by("example.com/path", at("/tmp/a")), false, true},
		"host path, provisioned by nobody by name": {by("", at("/tmp/a")), true, true},
		"an export":                           {export("server", "/a"), false, true},
		"a source that no plugin here knows":  {&v1.PersistentVolume{}, false, false},
		"another source by the plugin's name": {by(intree.HostPathName, export("server", "/a")), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, deletes := set.DeleterFor(tc.volume); deletes != tc.deletes {
				t.Errorf("a deleter was found: %v, want %v", deletes, tc.deletes)
			}
			if _, recycles := set.RecyclerFor(tc.volume); recycles != tc.recycles {
				t.Errorf("a recycler was found: %v, want %v", recycles, tc.recycles)
			}
		})
	}
}

func TestWhoProvisionsForAClass(t *testing.T) {
	for name, tc := range map[string]struct {
		migration   migrations
		provisioner string
		inTree      bool
		external    string
	}{
		"a plugin here":                      {nil, intree.HostPathName, true, ""},
		"a plugin here that is migrated":     {migrations{intree.HostPathName: "path.example.com"}, intree.HostPathName, false, "path.example.com"},
		"a plugin here that only recycles":   {nil, intree.NFSName, false, ""},
		"an in-tree name that nobody serves": {nil, "kubernetes.io/rbd", false, ""},
		"an external name":                   {nil, "example.com", false, "example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			set := plugins(tc.migration)
			if _, found := set.ProvisionerFor(tc.provisioner); found != tc.inTree {
				t.Errorf("a plugin was found: %v, want %v", found, tc.inTree)
			}
			if external, found := set.ExternalProvisioner(tc.provisioner); found != (tc.external != "") || found && external != tc.external {
				t.Errorf("ExternalProvisioner = %q, %v, want %q", external, found, tc.external)
			}
		})
	}
}

func TestMigrationFollowsTheProvisionerOrTheSource(t *testing.T) {
	on := plugins(migrations{intree.HostPathName: "path.example.com"})
	for name, tc := range map[string]struct {
		set    *intree.Set
		volume *v1.PersistentVolume
		want   string
	}{
		"on, provisioned":         {on, by(intree.HostPathName, at("/tmp/a")), "path.example.com"},
		"on, static":              {on, at("/tmp/a"), "path.example.com"},
		"on, of another plugin":   {on, export("server", "/a"), ""},
		"on, by an external name": {on, by("example.com", at("/tmp/a")), ""},
		"off, provisioned":        {plugins(nil), by(intree.HostPathName, at("/tmp/a")), ""},
		"off, static":             {plugins(nil), at("/tmp/a"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if driver, migrated := tc.set.MigratedTo(tc.volume); driver != tc.want || migrated != (tc.want != "") {
				t.Errorf("MigratedTo = %q, %v, want %q", driver, migrated, tc.want)
			}
		})
	}
}

func TestTheDataOfAVolumeContainsThatOfEveryVolumeBelowIt(t *testing.T) {
	set := plugins(nil)
	for name, tc := range map[string]struct {
		deleted, other *v1.PersistentVolume
		harmed         bool
	}{
		"the same path":                {at("/tmp/a"), at("/tmp/a"), true},
		"the same path in other words": {at("/tmp/a/"), at("/tmp//b/../a"), true},
		"below it":                     {at("/tmp/a"), at("/tmp/a/b/c"), true},
		"above it":                     {at("/tmp/a/b"), at("/tmp/a"), false},
		"beside it":                    {at("/tmp/a"), at("/tmp/ab"), false},
		"everything":                   {at("/"), at("/tmp/a"), true},
		"the same export":              {export("server", "/a"), export("server", "/a/"), true},
		"below the export":             {export("server", "/"), export("server", "/a"), true},
		"another server":               {export("server", "/a"), export("other", "/a"), false},
		"of another plugin":            {export("server", "/a"), at("/server/a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := slices.Contains(set.Places(tc.other), set.Location(tc.deleted)); got != tc.harmed {
				t.Errorf("%v contains %q: %v, want %v", set.Places(tc.other), set.Location(tc.deleted), got, tc.harmed)
			}
		})
	}
	if set.Location(&v1.PersistentVolume{}) != "" || set.Places(&v1.PersistentVolume{}) != nil {
		t.Error("a volume of no plugin here has a place")
	}
}
