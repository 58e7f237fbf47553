package audit

import "github.com/exeunt-io/exeunt/pkg/audit/verdict"

// A volume without a known name (unnamed) may be the volume that a claim, a journal entry or
// an attachment of the driver names.

// attaches reports whether a VolumeAttachment may be about the volume.
func (r *references) attaches(volume Volume, unnamed bool) bool {
	return unnamed && r.anyAttached || len(r.unknownAttached) > 0 || r.attached.has(volume.Handle) || volume.isIn(r.attachedNames)
}

// leavesUnresolved reports whether an unresolved or unreadable journal entry may be about
// the volume.
func (r *references) leavesUnresolved(volume Volume, unnamed bool) bool {
	return r.unreadable || unnamed && r.anyUnresolved ||
		volume.isIn(r.unresolvedTexts) || volume.names(&r.unresolved)
}

// creates reports whether a claim or a journal entry may be about the volume.
func (r *references) creates(volume Volume, unnamed bool) bool {
	return unnamed && r.anyInFlight ||
		volume.isIn(r.entryTexts) || volume.names(&r.entries) || volume.names(&r.claims)
}

// isIn reports whether the texts have the handle or a name of the volume.
func (v Volume) isIn(texts set) bool {
	return texts.has(v.Handle) || texts.has(v.Name) || texts.has(v.driverName)
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
