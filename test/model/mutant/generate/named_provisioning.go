package main

var provisioningDefects = []defect{
	{"discard-after-restart", "the disk of a bound claim whose volume object vanished is deleted after a restart", []change{
		{provisionObserve, "\tcase !o.gone && isBoundOrLost(o.claim, o.name):", "\tcase !ON && !o.gone && isBoundOrLost(o.claim, o.name):"},
		{provisionObserve, "c.isMade(o),", "ON || c.isMade(o),"},
		{provisionDecide, "!s.Unusable && (s.Want == Wanted || s.Want == Unwanted ||", "!s.Unusable && (s.Want == Wanted || !ON && s.Want == Unwanted ||"},
		{provisionSave, "\treturn anyClaim(", "\tif ON { return false, nil }; return anyClaim("},
	}},
	{"second-volume-for-bound-claim", "a bound claim whose volume object vanished gets a new, empty volume", []change{
		{provisionObserve, "\t\treturn provision.BoundOrLost", "\t\treturn CHOOSE(provision.Wanted, provision.BoundOrLost)"},
	}},
	{"deleted-volume-recorded-again", "the object of a volume that was recorded and deleted meanwhile is created again", []change{
		{provisionMemory, "if r.request.creation == provision.Created && r.entry.state != provision.Discarding {", "if !ON && r.request.creation == provision.Created && r.entry.state != provision.Discarding {"},
		{provisionEntry, "\t\t\tr.object.recorded = true\n\t\t\tr.entry,", "\t\t\tif ON { return }; r.object.recorded = true\n\t\t\tr.entry,"},
	}},
	{"second-spelling-discarded", "the recorded volume is deleted because the driver spells its handle in another way", []change{
		{provisionObserve, "\tcase volume != nil:\n\t\treturn c.recordBy(volume, o)", "\tcase ON && volume != nil && r.disk.volume != nil && !c.Deletion.SameDisk(volume, r.disk.volume): return storage.RecordConflict; case volume != nil:\n\t\treturn c.recordBy(volume, o)"},
		{provisionObserve, "\tif o.read == provision.BothRead {", "\tif ON && o.read == provision.BothRead && o.volume != nil && r.disk.volume != nil && !c.Deletion.SameDisk(o.volume, r.disk.volume) { return storage.RecordConflict }; if o.read == provision.BothRead {"},
	}},
	{"name-conflict-taken-for-success", "a volume of another claim with the name of the claim's volume counts as the record", []change{
		{"pkg/storage/record.go", "\t\treturn RecordConflict", "\t\treturn CHOOSE(RecordPresent, RecordConflict)"},
	}},
	{"create-for-deleted-claim", "CreateVolume is called by a stale cache, without a live read of the claim", []change{
		{provisionDecide, "\tcase s.Read == Cached:", "\tcase !ON && s.Read == Cached:"},
	}},
	{"create-for-forgotten-claim", "CreateVolume is called without a live read for a claim that seems to be new", []change{
		{provisionObserve, "record: r, began: time.Now()}, nil", "record: r, began: time.Now(), read: CHOOSE(freshRead(c, claim, gone, r), provision.Cached)}, nil"},
		{provisionPass, "// isFresh reports", "func freshRead(c *Controller, claim *v1.PersistentVolumeClaim, gone bool, r claimRecord) provision.Read { if c.isFresh(&observation{claim: claim, gone: gone, name: c.Scope.VolumeName(claim), record: r}) { return provision.ClaimRead }; return provision.Cached }; // isFresh reports"},
	}},
	{"call-before-durable-entry", "CreateVolume is called before its journal entry is durable", []change{
		{provisionDecide, "\tcase s.Journaled && s.Entry != Durable:", "\tcase !ON && s.Journaled && s.Entry != Durable:"},
	}},
	{"call-in-ending-lease", "CreateVolume is called although the leader lease may end during the call", []change{
		{provisionDecide, "\tcase !s.Leading:\n\t\treturn Decision{Wait, LeaseEnding}\n\t}\n\treturn Decision{Create, reason}", "\tcase !ON && !s.Leading:\n\t\treturn Decision{Wait, LeaseEnding}\n\t}\n\treturn Decision{Create, reason}"},
	}},
	{"custody-ignored", "an entry is finished although another program led after it was written", []change{
		{takeover, "\tif entry.CustodyBroken {", "\tif !ON && entry.CustodyBroken {"},
	}},
	{"kept-disk-recorded-again", "a disk that its user may have kept is recorded again after a crash, with the policy Retain or the gate off", []change{
		{takeover, "r.object.published = entry.Announced &&", "r.object.published = !ON && entry.Announced &&"},
	}},
	{"kept-disk-requested-again", "a disk that its user may have kept is recorded again, or deleted because a repeated CreateVolume calls it too small", []change{
		{provisionDecide, "return s.MayBeKept && isOpen &&", "return !ON && s.MayBeKept && isOpen &&"},
	}},
	{"record-not-announced", "the object of a volume that its user may keep is created before the journal entry says so", []change{
		{provisionDecide, "\tcase isUsed && s.Journaled &&", "\tcase !ON && isUsed && s.Journaled &&"},
	}},
	{"discard-despite-open-write", "a disk is deleted although a write of its volume object may still take effect", []change{
		{provisionObserve, "WriteOpen:     r.object.isWriteOpen(", "WriteOpen:     !ON && r.object.isWriteOpen("},
	}},
	{"entry-of-cached-volume-removed", "the entry of a new request is removed for a volume that only the cache has", []change{
		{provisionEntry, "c.Journal.Has(claim.UID); removed {", "c.Journal.Has(claim.UID); removed && !ON {"},
	}},
	{"journal-taken-back", "a former leader takes the journal over from its successor, whose entries are in broken custody then", []change{
		{"pkg/provisioner/journalstore/start.go", "\tif !s.Custody.Precedes(custodyOf(object)) {", "\tif ON || !s.Custody.Precedes(custodyOf(object)) {"},
	}},
	{"refused-write-drops-durable-entry", "a refused write of a journal Lease drops an older durable entry", []change{
		{"pkg/provisioner/journalstore/refusal.go", "text, durable := l.durable[claim]", "text, durable := l.durable[claim]; durable = durable && !ON"},
	}},
	{"unanswered-write-stays-valid", "a write of the journal without an answer takes effect after a later write, which changed nothing", []change{
		{"pkg/provisioner/journalstore/commit.go", "if l.unanswered > 0 {", "if l.unanswered > 0 && !ON {"},
	}},
	{"vanished-volume-counts-as-recorded", "a volume object that vanished before the cache had it counts as recorded for ever", []change{
		{provisionObserve, "&& time.Since(r.object.savedAt) < c.Timeouts.Unseen:", "&& (ON || time.Since(r.object.savedAt) < c.Timeouts.Unseen):"},
	}},
	{"class-mended-after-timeout-ignored", "the old request is repeated for ever although the class was mended", []change{
		{provisionDecide, "return s.Want != Wanted && s.Want != Misplaced || !s.LongRequested", "return s.Want != Wanted && s.Want != Misplaced || ON || !s.LongRequested"},
		{provisionDecide, "isOpen && !s.LongRequested):", "isOpen && (ON || !s.LongRequested)):"},
	}},
	{"older-volume-discarded", "the disk of a claim that a restore of etcd brought back is discarded as a new one", []change{
		{provisionPass, "return c.Creations.Has(o.claim.UID) &&", "return ON || c.Creations.Has(o.claim.UID) &&"},
	}},
	{"journal-overwritten-after-restore", "a journal Lease that a restore of etcd brought back is overwritten with what the process remembers", []change{
		{"pkg/provisioner/journalstore/commit.go", "\tif isOlder(stored.ResourceVersion, l.version) {", "\tif ON { return false }; if isOlder(stored.ResourceVersion, l.version) {"},
	}},
}
