package storage_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestEveryEnumValueHasItsOwnName(t *testing.T) {
	enumtest.ExpectNames(t, storage.PolicyUnknown, storage.PolicyDelete)
	enumtest.ExpectNames(t, storage.PhasePending, storage.PhaseFailed)
	enumtest.ExpectNames(t, storage.SourceNone, storage.SourceOther)
	enumtest.ExpectNames(t, storage.RecordAbsent, storage.RecordElsewhere)
	enumtest.ExpectNames(t, storage.ClaimNone, storage.ClaimElsewhere)
}
