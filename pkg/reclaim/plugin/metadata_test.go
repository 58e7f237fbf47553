package plugin_test

import (
	"slices"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	. "github.com/exeunt-io/exeunt/pkg/storage"
)

func TestInitialFinalizers(t *testing.T) {
	inTree := []string{"kubernetes.io/pv-controller"}
	for name, tc := range map[string]struct {
		honor   bool
		policy  Policy
		deletes bool
		want    []string
	}{
		"policy Delete":        {true, PolicyDelete, true, inTree},
		"policy Retain":        {true, PolicyRetain, true, nil},
		"policy Recycle":       {true, PolicyRecycle, true, nil},
		"gate off":             {false, PolicyDelete, true, nil},
		"plugin cannot delete": {true, PolicyDelete, false, nil},
		"unknown policy":       {true, PolicyUnknown, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := InitialFinalizers(tc.honor, tc.policy, tc.deletes); !slices.Equal(got, tc.want) {
				t.Errorf("InitialFinalizers = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDecideMetadata(t *testing.T) {
	for name, tc := range map[string]struct {
		state MetadataState
		want  MetadataChange
	}{
		"in-tree volume gets the finalizer": {MetadataState{Honor: true, Origin: OriginPlugin,
			Policy: PolicyDelete}, MetadataChange{AddInTree: true}},
		"finalizer is not added twice": {MetadataState{Honor: true, Origin: OriginPlugin,
			Policy: PolicyDelete, InTree: true}, MetadataChange{}},
		"deleted volume gets no finalizer": {MetadataState{Honor: true, Origin: OriginPlugin,
			Policy: PolicyDelete, Deleting: true}, MetadataChange{}},
		"volume without plugin gets no finalizer": {MetadataState{Honor: true, Origin: OriginMissingPlugin, Policy: PolicyDelete}, MetadataChange{}},
		"migration off, finalizers are exchanged": {MetadataState{Honor: true, Origin: OriginPlugin,
			Policy: PolicyDelete, External: true, Migrated: MigratedToDriver}, MetadataChange{AddInTree: true, RemoveExternal: true, RemoveMigrated: true}},
		"migrated volume loses InTree and keeps External": {MetadataState{Honor: true, Origin: OriginMigratedPlugin,
			Policy: PolicyDelete, InTree: true, External: true}, MetadataChange{RemoveInTree: true, SetMigrated: true}},
		"migrated volume without External loses InTree":        {MetadataState{Honor: true, Origin: OriginMigratedPlugin, Policy: PolicyDelete, InTree: true, Migrated: MigratedToDriver}, MetadataChange{RemoveInTree: true}},
		"wrong annotation of a migrated volume is corrected":   {MetadataState{Honor: true, Origin: OriginMigratedPlugin, Policy: PolicyRetain, Migrated: MigratedToOther}, MetadataChange{SetMigrated: true}},
		"external volume keeps External":                       {MetadataState{Honor: true, Origin: OriginExternal, Policy: PolicyDelete, External: true}, MetadataChange{}},
		"external volume loses a wrong annotation":             {MetadataState{Honor: true, Origin: OriginExternal, Policy: PolicyDelete, External: true, Migrated: MigratedToOther}, MetadataChange{RemoveMigrated: true}},
		"external volume loses InTree":                         {MetadataState{Honor: true, Origin: OriginExternal, Policy: PolicyDelete, InTree: true}, MetadataChange{RemoveInTree: true}},
		"volume without plugin loses both finalizers":          {MetadataState{Honor: true, Origin: OriginMissingPlugin, Policy: PolicyDelete, InTree: true, External: true}, MetadataChange{RemoveInTree: true, RemoveExternal: true}},
		"volume of removed plugin loses External":              {MetadataState{Honor: true, Origin: OriginMissingPlugin, Policy: PolicyDelete, External: true, Migrated: MigratedToOther}, MetadataChange{RemoveExternal: true, RemoveMigrated: true}},
		"deleted volume of removed plugin loses External":      {MetadataState{Honor: true, Origin: OriginMissingPlugin, Policy: PolicyDelete, External: true, Deleting: true}, MetadataChange{RemoveExternal: true}},
		"static volume of a migrated plugin is annotated":      {MetadataState{Honor: true, Origin: OriginStaticMigrated, Policy: PolicyDelete}, MetadataChange{SetMigrated: true}},
		"migration off, deleted volume keeps External":         {MetadataState{Honor: true, Origin: OriginPlugin, Policy: PolicyDelete, External: true, Deleting: true}, MetadataChange{}},
		"migration off, InTree replaces External":              {MetadataState{Honor: true, Origin: OriginPlugin, Policy: PolicyDelete, External: true, InTree: true, Deleting: true}, MetadataChange{RemoveExternal: true}},
		"migration off, Retain volume loses External":          {MetadataState{Honor: true, Origin: OriginPlugin, Policy: PolicyRetain, External: true, Migrated: MigratedToDriver}, MetadataChange{RemoveExternal: true, RemoveMigrated: true}},
		"deleted unclaimed volume loses both finalizers":       {MetadataState{Honor: true, Origin: OriginPlugin, Policy: PolicyDelete, InTree: true, External: true, Deleting: true, Unclaimed: true}, MetadataChange{RemoveInTree: true, RemoveExternal: true}},
		"finalizer without plugin is removed":                  {MetadataState{Honor: true, Origin: OriginMissingPlugin, Policy: PolicyDelete, InTree: true}, MetadataChange{RemoveInTree: true}},
		"deleted volume's finalizer without plugin is removed": {MetadataState{Honor: true, Origin: OriginMissingPlugin, Policy: PolicyDelete, InTree: true, Deleting: true}, MetadataChange{RemoveInTree: true}},
		"static in-tree volume is left alone":                  {MetadataState{Honor: true, Origin: OriginStatic, Policy: PolicyDelete}, MetadataChange{}},
		"Retain volume loses the finalizer":                    {MetadataState{Honor: true, Origin: OriginPlugin, Policy: PolicyRetain, InTree: true}, MetadataChange{RemoveInTree: true}},
		"Recycle volume loses the finalizer":                   {MetadataState{Honor: true, Origin: OriginPlugin, Policy: PolicyRecycle, InTree: true}, MetadataChange{RemoveInTree: true}},
		"Retain volume gets no finalizer":                      {MetadataState{Honor: true, Origin: OriginPlugin, Policy: PolicyRetain}, MetadataChange{}},
		"gate off, finalizer is removed":                       {MetadataState{Origin: OriginPlugin, Policy: PolicyDelete, InTree: true}, MetadataChange{RemoveInTree: true}},
		"gate off, static volume loses the finalizer":          {MetadataState{Origin: OriginStatic, Policy: PolicyDelete, InTree: true}, MetadataChange{RemoveInTree: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideMetadata(tc.state); got != tc.want {
				t.Errorf("DecideMetadata(%+v) = %+v, want %+v", tc.state, got, tc.want)
			}
		})
	}
}

// apply returns the state after the change was written.
func apply(s MetadataState, m MetadataChange) MetadataState {
	s.InTree = s.InTree && !m.RemoveInTree || m.AddInTree
	s.External = s.External && !m.RemoveExternal
	switch {
	case m.SetMigrated:
		s.Migrated = MigratedToDriver
	case m.RemoveMigrated:
		s.Migrated = MigratedToNone
	}
	return s
}

func TestMetadataNeedsOneWrite(t *testing.T) {
	for s := range metadataStates {
		after := apply(s, DecideMetadata(s))
		if again := DecideMetadata(after); !again.IsEmpty() {
			t.Errorf("%+v: %+v is followed by %+v", s, DecideMetadata(s), again)
		}
	}
}

func TestExchangedFinalizersLeaveNoGap(t *testing.T) {
	for s := range metadataStates {
		after := apply(s, DecideMetadata(s))
		protected := s.InTree || s.External
		lost := protected && !after.InTree && !after.External && s.Honor && s.Policy == PolicyDelete
		external := s.Origin == OriginMigratedPlugin || s.Origin == OriginStaticMigrated ||
			s.Origin == OriginExternal // the provisioner adds External
		missing := s.Origin == OriginMissingPlugin
		if lost && !external && !missing && !s.Deleting {
			t.Errorf("%+v ends without a finalizer: %+v", s, after)
		}
	}
}

// After the write, the plugin or a provisioner that knows the volume as its own removes
// every finalizer that is left.
func TestFinalizerStaysOnlyWhereItCanBeRemoved(t *testing.T) {
	for s := range metadataStates {
		after := apply(s, DecideMetadata(s))
		provisioner := s.Origin == OriginExternal || s.Origin == OriginStatic || after.Migrated == MigratedToDriver
		if after.InTree && s.Origin != OriginPlugin && s.Origin != OriginStatic || after.External &&
			s.Origin != OriginPlugin && !provisioner {
			t.Errorf("%+v ends with a finalizer that stays for ever: %+v", s, after)
		}
	}
}

func TestFinalizerIsAddedOnlyWhereItCanBeRemoved(t *testing.T) {
	for s := range metadataStates {
		if DecideMetadata(s).AddInTree && (s.Origin != OriginPlugin || s.Deleting || !s.Honor || s.Policy != PolicyDelete) {
			t.Errorf("InTree added in %+v", s)
		}
	}
}

func TestUnprotectedVolumeLacksEveryFinalizer(t *testing.T) {
	for origin := OriginStatic; origin <= OriginStaticMigrated; origin++ {
		for policy := PolicyUnknown; policy <= PolicyDelete; policy++ {
			for bits := range 4 {
				s := MetadataState{Honor: true, Origin: origin, Policy: policy, InTree: bits&1 != 0, External: bits&2 != 0}
				want := DecideMetadata(s).AddInTree && !s.External
				if got := s.IsUnprotected(); got != want {
					t.Errorf("%+v: IsUnprotected() = %v, want %v", s, got, want)
				}
			}
		}
	}
}
