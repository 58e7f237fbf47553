package disk_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/disk"
)

func hostPath(path string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.HostPath = &v1.HostPathVolumeSource{Path: path}
	return volume
}

func local(path string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.Local = &v1.LocalVolumeSource{Path: path}
	return volume
}

func nfs(server, path string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.NFS = &v1.NFSVolumeSource{Server: server, Path: path}
	return volume
}

// on returns a host-path volume that only the node reaches, or every node for "".
func on(node string) *v1.PersistentVolume {
	volume := hostPath("/tmp/a")
	if node == "" {
		return volume
	}
	volume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
			Values: []string{node}}},
	}}}}
	return volume
}

func TestDirectoryOfVolumeIsCleaned(t *testing.T) {
	for name, tc := range map[string]struct {
		got, want string
	}{
		"host path":                 {disk.HostPath(hostPath("/tmp//b/../a/")), "/tmp/a"},
		"host path, empty":          {disk.HostPath(hostPath("")), ""},
		"host path of NFS volume":   {disk.HostPath(nfs("server", "/a")), ""},
		"local":                     {disk.Local(local("/mnt//b/../a/")), "/mnt/a"},
		"local, empty":              {disk.Local(local("")), ""},
		"local of host path":        {disk.Local(hostPath("/tmp/a")), ""},
		"NFS":                       {disk.NFS(nfs("server", "/a/")), "server/a"},
		"NFS, above the root":       {disk.NFS(nfs("server", "/../b/../../a")), "server/a"},
		"NFS, server spelled twice": {disk.NFS(nfs("Server.Example.com.", "/a")), "server.example.com/a"},
		"NFS, root":                 {disk.NFS(nfs("server", "/")), "server"},
		"NFS of host-path volume":   {disk.NFS(hostPath("/tmp/a")), ""},
		"host path without source":  {disk.HostPath(&v1.PersistentVolume{}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %q, want %q", tc.got, tc.want)
			}
		})
	}
}

func TestParentDirectoriesEncloseTheVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		plugin, directory string
		want              []string
	}{
		"host path": {"p", "/tmp/a/b", []string{"p:/tmp/a/b", "p:/tmp/a", "p:/tmp", "p:/"}},
		"root":      {"p", "/", []string{"p:/"}},
		"NFS":       {"p", "server/a", []string{"p:server/a", "p:server"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := disk.Enclosing(tc.plugin, tc.directory); !slices.Equal(got, tc.want) {
				t.Errorf("Enclosing = %v, want %v", got, tc.want)
			}
		})
	}
	if slices.Contains(disk.Enclosing("p", "/tmp/ab"), disk.Directory("p", "/tmp/a")) {
		t.Error("/tmp/a encloses /tmp/ab")
	}
}

// Volumes count as separate only if both are certainly out of reach of each other.
func TestVolumesOnSeparateNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		volume, other string // the node that reaches the volume, "" for every node
		node          string // the plugin's node, "" for unknown
		want          bool
	}{
		"one node":                              {"a", "a", "", false},
		"different nodes, plugin unknown":       {"a", "b", "", false},
		"different nodes, plugin at the volume": {"a", "b", "a", true},
		"different nodes, plugin at the other":  {"a", "b", "b", false},
		"different nodes, plugin elsewhere":     {"a", "b", "c", true},
		"volume on every node":                  {"", "b", "", false},
		"other on every node":                   {"a", "", "", false},
		"both on every node":                    {"", "", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := on(tc.volume)
			volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimDelete
			if got := disk.OnSeparateNodes(tc.node, volume, on(tc.other)); got != tc.want {
				t.Errorf("OnSeparateNodes = %v, want %v", got, tc.want)
			}
			volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRecycle // by a pod on a node of the volume
			if got, want := disk.OnSeparateNodes(tc.node, volume, on(tc.other)), tc.volume != "" && tc.other != "" &&
				tc.volume != tc.other; got != want {
				t.Errorf("OnSeparateNodes of a recycled volume = %v, want %v", got, want)
			}
		})
	}
}
