package verdict_test

import (
	"regexp"
	"strings"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/audit/verdict"
)

const claimUID = "0f8fad5b-d9cb-469f-a165-70867728950e"

var hexDigits = regexp.MustCompile(`^[0-9a-f]{32}$`)

// A text that contains the UID of a claim names the claim, and so does a volume name that
// ends in at least six of its first digits.
func FuzzNamedClaims(f *testing.F) {
	f.Add(claimUID, "pvc-", "", 8)
	f.Add("no-uuid", "csi-", "-x", 0)
	f.Add(strings.ToUpper(claimUID), "/a/0f8fad5bd9cb", "", 40)
	f.Add("", "", "", -1)
	f.Fuzz(func(t *testing.T, uid, before, after string, digits int) {
		var claims, none Claims
		claims.Add(uid)
		if none.Named(before + uid + after) {
			t.Errorf("%q names a claim, of which there is none", before+uid+after)
		}
		plain := strings.ToLower(strings.ReplaceAll(uid, "-", ""))
		if !hexDigits.MatchString(plain) {
			if !claims.Named("pvc-" + uid) {
				t.Errorf("pvc-%q does not name its claim", uid)
			}
			return
		}
		if !claims.Named(before + plain + after) {
			t.Errorf("%q does not name claim %q", before+plain+after, uid)
		}
		if digits < 6 || digits > 32 {
			return
		}
		if name := "my.prefix-" + plain[:digits]; !claims.Named(name) {
			t.Errorf("%q does not name claim %q", name, uid)
		}
		other := strings.Repeat("0", digits)
		if name := "my.prefix-" + other; !strings.HasPrefix(plain, other) && claims.Named(name) {
			t.Errorf("%q names claim %q", name, uid)
		}
	})
}

// Handles that differ in case or path have one spelling, and a volume has the name of its
// context or a part of its handle.
func FuzzHandles(f *testing.F) {
	f.Add("projects/p/zones/z/disks/pvc-"+claimUID, "name", "data")
	f.Add(`C:\disks\Data\`, "volumeName", "")
	f.Add("csi-"+strings.Repeat("0a", 32), "", "")
	f.Add("\xff/İ", "x", "y")
	f.Fuzz(func(t *testing.T, handle, key, value string) {
		spelling := Spelling(handle)
		if spelling == "" {
			return // nothing but separators
		}
		for _, alike := range []string{spelling, "/another/path/" + handle, handle + "/"} {
			if got := Spelling(alike); got != spelling {
				t.Errorf("spelling of %q is %q, of %q it is %q", handle, spelling, alike, got)
			}
		}
		name := Name(handle, map[string]string{key: value})
		if name != "" && name != value && !strings.Contains(handle, name) {
			t.Errorf("name of %q with %q=%q is %q", handle, key, value, name)
		}
		if IsKubeletHandle(handle) && len(handle) != len("csi-")+64 {
			t.Errorf("%q is taken for a handle of a kubelet", handle)
		}
	})
}
