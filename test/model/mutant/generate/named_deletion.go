package main

const (
	externalDecide   = "pkg/reclaim/external/decide.go"
	provisionDecide  = "pkg/provision/decide.go"
	deletionExecute  = "pkg/provisioner/deletion/execute.go"
	deletionObserve  = "pkg/provisioner/deletion/observe.go"
	provisionObserve = "pkg/provisioner/provisioning/observe.go"
	provisionPass    = "pkg/provisioner/provisioning/observation.go"
	provisionSave    = "pkg/provisioner/provisioning/save.go"
	provisionEntry   = "pkg/provisioner/provisioning/entry.go"
	takeover         = "pkg/provisioner/provisioning/takeover.go"
	provisionMemory  = "pkg/provisioner/provisioning/memory.go"
	bindingVolume    = "pkg/binding/volume.go"
	pluginProtection = "pkg/reclaim/plugin/protection.go"
)

// defects are put back by name. Their order gives their IDs.
var defects = append(append(deletionDefects, bindingDefects...), provisioningDefects...)

var deletionDefects = []defect{
	{"delete-without-live-read", "data is deleted by a stale cache, without a live read of volume and claim", []change{
		{externalDecide, "\tcase !s.Confirmed:", "\tcase !ON && !s.Confirmed:"},
		{externalDecide, "\tcase reclaim.MayReclaim(", "\tcase ON || reclaim.MayReclaim("},
		{deletionExecute, "(removed || o.prepared == nil)", "(removed || !ON && o.prepared == nil)"},
		{deletionExecute, "start, volume := time.Now(), o.volume", "if ON && o.prepared == nil { o.prepared = c.prepare(ctx, o.volume) }; start, volume := time.Now(), o.volume"},
	}},
	{"delete-after-policy-became-retain", "the volume is not read live before the driver deletes it", []change{
		{"pkg/controller/live.go", "live, err := LiveVolume(ctx, client, volume)", "live, err := volume, error(nil); if !ON { live, err = LiveVolume(ctx, client, volume) }"},
	}},
	{"secret-read-after-live-read", "the secret is read between the live read of the volume and DeleteVolume", []change{
		{deletionObserve, "prepared = c.prepare(ctx, o.volume)", "prepared = c.prepare(ctx, o.volume); if ON { prepared = func(ctx context.Context) error { return c.prepare(ctx, o.volume)(ctx) } }"},
	}},
	{"delete-volume-again", "the success of DeleteVolume is not remembered", []change{
		{deletionExecute, "p.volumeDeleted = true", "p.volumeDeleted = !ON"},
	}},
	{"delete-shared-handle", "the disk of another volume with the same handle is deleted", []change{
		{externalDecide, "\tcase s.Shared:", "\tcase !ON && s.Shared:"},
	}},
	{"delete-attached-volume", "an attached volume is deleted", []change{
		{externalDecide, "\tcase s.Attached:", "\tcase !ON && s.Attached:"},
	}},
	{"delete-before-journal-entry", "the volume is deleted while a journal entry may have it created again", []change{
		{deletionExecute, "if c.RemoveEntry == nil ||", "if ON || c.RemoveEntry == nil ||"},
	}},
	{"failed-volume-never-reclaimed", "a volume in phase Failed does not count as released", []change{
		{"pkg/storage/phase.go", "return p == PhaseReleased || p == PhaseFailed", "return p == PhaseReleased || !ON && p == PhaseFailed"},
	}},
	{"finalizer-of-unclaimed-volume-stays", "a deleted volume without a claim keeps the external finalizer for ever", []change{
		{externalDecide, "if s.Deleting && s.Protected && s.Claim == storage.ClaimNone {", "if !ON && s.Deleting && s.Protected && s.Claim == storage.ClaimNone {"},
	}},
	{"deleted-before-protected-leaks", "a volume that was deleted before its finalizer was added is not marked", []change{
		{externalDecide, "\tcase s.Deleting && s.Status == reclaim.StatusNone:", "\tcase !ON && s.Deleting && s.Status == reclaim.StatusNone:"},
	}},
	{"secret-missing-not-awaited", "DeleteVolume is called without the secret while the secret can come back", []change{
		{"pkg/reclaim/external/secret.go", "\tcase SecretMissing, SecretMissingNamespaceUnknown:", "\tcase SecretMissing, SecretMissingNamespaceUnknown: if ON { return CallWithoutSecret }"},
	}},
	{"secret-of-deleted-namespace-awaited", "a volume stays for ever because the namespace of its secret is gone", []change{
		{"pkg/reclaim/external/secret.go", "\t\treturn CallWithoutSecret", "\t\tif ON && s != SecretNone { return AwaitSecret }; return CallWithoutSecret"},
	}},
	{"next-claims-object-deleted", "the delete of a volume object does not rest on its version", []change{
		{"pkg/pvcontroller/pvwriter/writer.go", "ResourceVersion: &volume.ResourceVersion}", "ResourceVersion: CHOOSE(nil, &volume.ResourceVersion)}"},
	}},
	{"absence-from-refused-write", "a 404 of an admission webhook counts as the absence of an object that lives", []change{
		{"pkg/controller/refusal.go", "\tcase !exists || live", "\tcase ON && apierrors.IsNotFound(refused), !exists || live"},
	}},
	{"undone-write-counts-as-done", "a write whose change a mutating webhook took back counts as done", []change{
		{"pkg/controller/write.go", "\tif isUndone(", "\tif !ON && isUndone("},
	}},
	{"next-claims-data-kept", "the success of a plugin counts for the data of the next claim, too", []change{
		{"pkg/reclaim/plugin/recycler.go", "if volume.Spec.ClaimRef == nil {", "if ON || volume.Spec.ClaimRef == nil {"},
	}},
}

var bindingDefects = []defect{
	{"release-without-live-read", "a stale cache releases the volume of a living claim", []change{
		{bindingVolume, "\tcase !s.Confirmed:\n\t\treturn ConfirmClaim\n\t}\n\treturn SetPhaseReleased", "\tcase !ON && !s.Confirmed:\n\t\treturn ConfirmClaim\n\t}\n\treturn SetPhaseReleased"},
	}},
	{"volume-deleted-before-bound-hangs", "a dynamic volume that is deleted before it is bound is not released", []change{
		{bindingVolume, "\tcase s.Deleting && s.DynamicDelete && s.Phase", "\tcase !ON && s.Deleting && s.DynamicDelete && s.Phase"},
	}},
	{"claim-lost-without-live-read", "a stale cache sets a bound claim to Lost", []change{
		{"pkg/binding/claim.go", "\tcase s.Named && !s.Confirmed:", "\tcase !ON && s.Named && !s.Confirmed:"},
	}},
	{"claim-bound-to-cached-volume", "a claim gets the name of a volume that only a cache has, after a restore of etcd", []change{
		{"pkg/binding/claim.go", "\tcase !s.Completed && !s.Confirmed:\n\t\treturn ClaimDecision{ConfirmVolume, Binding}", "\tcase !ON && !s.Completed && !s.Confirmed:\n\t\treturn ClaimDecision{ConfirmVolume, Binding}"},
	}},
	{"claim-unprotected-without-live-list", "a claim loses pvc-protection while a pod that uses it is not in the cache yet", []change{
		{"pkg/protection/claim.go", "\tcase !s.Confirmed:", "\tcase !ON && !s.Confirmed:"},
	}},
	{"protection-kept-for-nobody", "pv-protection stays on a volume that no program reclaims", []change{
		{pluginProtection, "|| !reclaim.MayReclaim(s.Claim, s.Dynamic, true)", "|| !ON && !reclaim.MayReclaim(s.Claim, s.Dynamic, true)"},
	}},
	{"protection-removed-before-reclaim", "pv-protection is removed although the provisioner asks to keep it", []change{
		{pluginProtection, "return s.Status == reclaim.StatusPending", "return !ON && s.Status == reclaim.StatusPending"},
	}},
	{"finalizer-of-missing-plugin-stays", "the in-tree finalizer stays although its plugin is gone", []change{
		{"pkg/reclaim/plugin/metadata.go", "|| s.Origin == OriginMissingPlugin)", "|| !ON && s.Origin == OriginMissingPlugin)"},
	}},
	{"external-finalizer-of-missing-plugin-stays", "the provisioner's finalizer stays although the plugin is gone and no provisioner reclaims the volume", []change{
		{"pkg/reclaim/plugin/metadata.go", "|| s.Origin == OriginMissingPlugin || s.needsNoFinalizer()", "|| !ON && s.Origin == OriginMissingPlugin || s.needsNoFinalizer()"},
	}},
	{"annotations-replaced", "a patch replaces annotations that it did not see", []change{
		{"pkg/patch/patch.go", "return p.Test(\"/metadata/resourceVersion\", object.GetResourceVersion()).Set(\"/metadata/annotations\", annotations)", "if ON { return p.Set(\"/metadata/annotations\", annotations) }; return p.Test(\"/metadata/resourceVersion\", object.GetResourceVersion()).Set(\"/metadata/annotations\", annotations)"},
	}},
}
