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

func local(path string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.Local = &v1.LocalVolumeSource{Path: path}
	return volume
}

func plugins(m migrations) *intree.Set {
	return intree.NewSet(m, &intree.HostPath{Root: "/tmp"}, &intree.NFS{})
}

func TestPluginIsFoundByNameOrSource(t *testing.T) {
	set := plugins(nil)
	for name, tc := range map[string]struct {
		volume            *v1.PersistentVolume
		deletes, recycles bool
	}{
		"static host path":                       {at("/tmp/a"), true, true},
		"provisioned host path":                  {by(intree.HostPathName, at("/tmp/a")), true, true},
		"host path of missing plugin":            {by("kubernetes.io/rbd", at("/tmp/a")), false, true},
		"host path of external provisioner":      {by("example.com/path", at("/tmp/a")), false, true},
		"host path with empty provisioner":       {by("", at("/tmp/a")), true, true},
		"export":                                 {export("server", "/a"), false, true},
		"source without plugin":                  {&v1.PersistentVolume{}, false, false},
		"local volume":                           {local("/tmp/a"), false, false},
		"other source, provisioned by host-path": {by(intree.HostPathName, export("server", "/a")), true, true},
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

func TestProvisionerOfClass(t *testing.T) {
	for name, tc := range map[string]struct {
		migration   migrations
		provisioner string
		inTree      bool
		external    string
	}{
		"plugin":                      {nil, intree.HostPathName, true, ""},
		"migrated plugin":             {migrations{intree.HostPathName: "path.example.com"}, intree.HostPathName, false, "path.example.com"},
		"plugin that only recycles":   {nil, intree.NFSName, false, ""},
		"in-tree name without plugin": {nil, "kubernetes.io/rbd", false, ""},
		"external name":               {nil, "example.com", false, "example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			set := plugins(tc.migration)
			if _, found := set.ProvisionerFor(tc.provisioner); found != tc.inTree {
				t.Errorf("a plugin was found: %v, want %v", found, tc.inTree)
			}
			if external, found := set.ExternalProvisioner(tc.provisioner); found != (tc.external != "") || found &&
				external != tc.external {
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
		"on, provisioned":   {on, by(intree.HostPathName, at("/tmp/a")), "path.example.com"},
		"on, static":        {on, at("/tmp/a"), "path.example.com"},
		"on, other plugin":  {on, export("server", "/a"), ""},
		"on, external name": {on, by("example.com", at("/tmp/a")), ""},
		"off, provisioned":  {plugins(nil), by(intree.HostPathName, at("/tmp/a")), ""},
		"off, static":       {plugins(nil), at("/tmp/a"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if driver, migrated := tc.set.MigratedTo(tc.volume); driver != tc.want || migrated != (tc.want != "") {
				t.Errorf("MigratedTo = %q, %v, want %q", driver, migrated, tc.want)
			}
		})
	}
}

func TestLocationContainsLocationsBelow(t *testing.T) {
	set := plugins(nil)
	for name, tc := range map[string]struct {
		deleted, other *v1.PersistentVolume
		harmed         bool
	}{
		"same path":                      {at("/tmp/a"), at("/tmp/a"), true},
		"same path, spelled differently": {at("/tmp/a/"), at("/tmp//b/../a"), true},
		"below":                          {at("/tmp/a"), at("/tmp/a/b/c"), true},
		"above":                          {at("/tmp/a/b"), at("/tmp/a"), false},
		"beside":                         {at("/tmp/a"), at("/tmp/ab"), false},
		"root of the file system":        {at("/"), at("/tmp/a"), true},
		"same export":                    {export("server", "/a"), export("server", "/a/"), true},
		"below the export":               {export("server", "/"), export("server", "/a"), true},
		"another server":                 {export("server", "/a"), export("other", "/a"), false},
		"other plugin":                   {export("server", "/a"), at("/server/a"), false},
		"local volume, same path":        {at("/mnt/a"), local("/mnt/a/"), true},
		"local volume below":             {at("/mnt/a"), local("/mnt/a/b"), true},
		"inside a local volume":          {local("/mnt/a"), at("/mnt/a/b"), true},
		"local volume beside":            {at("/mnt/a"), local("/mnt/ab"), false},
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
