package audit

import "github.com/exeunt-io/exeunt/pkg/audit/verdict"

// A volume without a known name (unnamed) may be the volume that a claim, a journal entry or
// an attachment of the driver names.

// attaches reports whether a VolumeAttachment may be about the volume.
func (r *references) attaches(volume Volume, unnamed bool) bool {
	return unnamed && r.anyAttached || r.attached.has(volume.Handle) || r.attachedNames.has(volume.Name)
}

// leavesUnresolved reports whether an unresolved or unreadable journal entry may be about
// the volume.
func (r *references) leavesUnresolved(volume Volume, unnamed bool) bool {
	return r.unreadable || unnamed && r.anyUnresolved ||
		r.unresolvedTexts.has(volume.Handle) || r.unresolvedTexts.has(volume.Name) || volume.names(&r.unresolved)
}

// creates reports whether a claim or a journal entry may be about the volume.
func (r *references) creates(volume Volume, unnamed bool) bool {
	return unnamed && r.anyInFlight ||
		r.entryTexts.has(volume.Handle) || r.entryTexts.has(volume.Name) || volume.names(&r.entries) || volume.names(&r.claims)
}

// names reports whether handle, name or context of the volume name one of the claims.
func (v Volume) names(claims *verdict.Claims) bool {
	if claims.Named(v.Handle) || claims.Named(v.Name) {
		return true
	}
	for _, value := range v.Context {
		if claims.Named(value) {
			return true
		}
	}
	return false
}
