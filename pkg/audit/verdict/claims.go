package verdict

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Claims are the UIDs of claims. The zero value has none.
type Claims struct {
	// uids are sorted UIDs without dashes, unless unsorted.
	uids     []uid
	unsorted bool
	// other are the UIDs that are not in the form of a UUID.
	other map[string]struct{}
}

type uid [16]byte

// Add adds the UID of a claim.
func (c *Claims) Add(text string) {
	if parsed, ok := parseUID(strings.ReplaceAll(text, "-", "")); ok {
		c.uids, c.unsorted = append(c.uids, parsed), true
		return
	}
	if c.other == nil {
		c.other = map[string]struct{}{}
	}
	c.other[text] = struct{}{}
}

func parseUID(digits string) (parsed uid, ok bool) {
	if len(digits) != hex.EncodedLen(len(parsed)) {
		return uid{}, false
	}
	_, err := hex.Decode(parsed[:], []byte(digits))
	return parsed, err == nil
}

var (
	// wholeUID is a UID in a text, with or without dashes.
	wholeUID = regexp.MustCompile(`(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}`)
	// shortUID is the beginning of a UID at the end of a name: provisioners can be told to
	// shorten the UID.
	shortUID = regexp.MustCompile(`(?i)(^|[^a-z0-9])([a-z0-9.]+)-([0-9a-f]{1,32})$`)
)

// shortest is the number of digits of a shortened UID that counts behind any prefix. Fewer
// digits count behind the default prefix only.
const (
	shortest      = 6
	defaultPrefix = "pvc"
)

// Named reports whether the text names a claim: by its UID, or as a name that ends in the
// beginning of its UID.
func (c *Claims) Named(text string) bool {
	c.sort()
	for rest := text; ; {
		at := wholeUID.FindStringIndex(rest)
		if at == nil {
			break
		}
		if c.hasPrefix(strings.ReplaceAll(rest[at[0]:at[1]], "-", "")) {
			return true
		}
		rest = rest[at[0]+1:] // matches may overlap
	}
	if found := shortUID.FindStringSubmatch(text); found != nil {
		prefix, digits := found[2], found[3]
		if (len(digits) >= shortest || strings.EqualFold(prefix, defaultPrefix)) && c.hasPrefix(digits) {
			return true
		}
	}
	for other := range c.other {
		if strings.HasSuffix(text, "-"+other) {
			return true
		}
	}
	return false
}

func (c *Claims) sort() {
	if c.unsorted {
		slices.SortFunc(c.uids, compareUIDs)
		c.uids, c.unsorted = slices.Compact(c.uids), false
	}
}

func compareUIDs(a, b uid) int { return bytes.Compare(a[:], b[:]) }

// hasPrefix reports whether the UID of a claim begins with the digits.
func (c *Claims) hasPrefix(digits string) bool {
	lowest, ok := parseUID(digits + strings.Repeat("0", 2*len(uid{})-len(digits)))
	if !ok {
		return false
	}
	at, _ := slices.BinarySearchFunc(c.uids, lowest, compareUIDs)
	return at < len(c.uids) && strings.HasPrefix(hex.EncodeToString(c.uids[at][:]), strings.ToLower(digits))
}
