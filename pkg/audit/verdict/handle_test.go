package verdict_test

import (
	"strings"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/audit/verdict"
)

const (
	first  = "0a1b2c3d-0000-4000-8000-000000000001"
	second = "ffffffff-0000-4000-8000-00000000000a"
)

func TestSpelling(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		same bool
	}{
		"equal":               {"vol-1", "vol-1", true},
		"another volume":      {"vol-1", "vol-2", false},
		"case":                {"/subscriptions/S/disks/Data", "/subscriptions/s/disks/data", true},
		"project":             {"projects/UNSPECIFIED/zones/z/disks/d", "projects/p/zones/z/disks/d", true},
		"zone":                {"projects/p/zones/a/disks/d", "projects/p/regions/b/disks/d", true},
		"path":                {"aws://us-east-1a/vol-1", "vol-1", true},
		"slash at the end":    {"server/share/", "server/share", true},
		"disk in a project":   {"projects/p/zones/a/disks/d", "projects/p/zones/a/disks/e", false},
		"longer handle":       {"vol-1", "vol-11", false},
		"path of a datastore": {"[one] folder/disk.vmdk", "[two] other/disk.vmdk", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Spelling(tc.a) == Spelling(tc.b); got != tc.same {
				t.Errorf("Spelling(%q) = %q, Spelling(%q) = %q", tc.a, Spelling(tc.a), tc.b, Spelling(tc.b))
			}
		})
	}
}

func TestKubeletHandle(t *testing.T) {
	for handle, want := range map[string]bool{
		"csi-" + strings.Repeat("0af9", 16): true,
		"csi-" + strings.Repeat("0", 63):    false,
		"csi-volume":                        false,
		"x-csi-" + strings.Repeat("0", 64):  false,
	} {
		if IsKubeletHandle(handle) != want {
			t.Errorf("IsKubeletHandle(%q) = %v", handle, !want)
		}
	}
}

func TestName(t *testing.T) {
	for name, tc := range map[string]struct {
		handle  string
		context map[string]string
		want    string
	}{
		"no name":         {"vol-1", map[string]string{"pool": "fast"}, ""},
		"of the context":  {"vol-1", map[string]string{"name": "data"}, "data"},
		"of extra create": {"vol-1", map[string]string{"name": "data", "csi.storage.k8s.io/pv/name": "pvc-1"}, "pvc-1"},
		"of the handle":   {"projects/p/zones/z/disks/pvc-" + first, nil, "pvc-" + first},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Name(tc.handle, tc.context); got != tc.want {
				t.Errorf("Name = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestClaimIsFoundByItsUID(t *testing.T) {
	var claims Claims
	for _, uid := range []string{second, first, first, "claim-1"} {
		claims.Add(uid)
	}
	for text, want := range map[string]bool{
		"pvc-" + first:                     true,
		"pvc-" + strings.ToUpper(second):   true,
		"disks/pvc-" + first + "/snapshot": true,
		strings.ReplaceAll(first, "-", ""): true,
		"pvc-0a1b2":                        true,
		"pvc-0a1b3":                        false,
		"data-0a1b2c":                      true,
		"data-0a1b2":                       false,
		"planted-000012":                   false,
		"pvc-" + strings.Replace(first, "1b", "1c", 1): false,
		"0001-0024-0000000000000002-" + first:          true,
		"pvc-claim-1":                                  true,
		"pvc-claim-2":                                  false,
		"":                                             false,
		"data":                                         false,
	} {
		if claims.Named(text) != want {
			t.Errorf("Named(%q) = %v", text, !want)
		}
	}
	var none Claims
	if none.Named("pvc-" + first) {
		t.Error("a claim was found among none")
	}
}
