package plan_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/why/printer"
)

// odd are texts that an encoding may write in another way where they are deeper in a document.
var odd = []string{
	"", "plain", "\n  \"items\": []", "\nitems: []\n", "items: []", "- a", "a: b # c", " led", "tail ", "\ttab", "a\r\nb", "\x1b[31m<&>",
	"\u202eright to left", "\U000e0041", "\xff", "null", "0x1", "1e3", "yes", "~", "'", "\"", "line\nline\n", "line\n\n", "\n\nline",
	"a sentence of more than eighty characters, which an encoder might wrap at one of its spaces, and so on and so forth",
}

// documentOf returns a document with so many items of odd texts.
func documentOf(items int) *teardown.Document {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := &teardown.Document{Cluster: teardown.Cluster{ID: "id", Server: odd[3], Version: odd[4]}, Phase: "Armed",
		Reason: teardown.Reason(odd[2]), Started: &started, Items: []teardown.Item{}, Incomplete: odd}
	for i := range items {
		text, next := odd[i%len(odd)], odd[(i*7+3)%len(odd)]
		d.Items = append(d.Items, teardown.Item{
			Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolume", Name: fmt.Sprint("pv-", i), UID: text},
			Claim: next, ExternalID: text, Driver: next, Size: int64(i), Created: started, Plan: teardown.PlanDelete,
			Reason: text, Fate: teardown.Planned, Blockers: []blocker.Blocker{{Finalizer: text, Holder: next, Next: text,
				Blockers: []blocker.Blocker{{Since: next}}}}[:i%2],
		})
	}
	for _, text := range odd {
		d.Problems = append(d.Problems, teardown.Problem{Reason: "Odd", Text: text, Next: text})
	}
	d.Count()
	return d
}

func TestItemsAreEncodedInPiecesToSameBytes(t *testing.T) {
	none := documentOf(0)
	none.Items = nil
	documents := map[string]*teardown.Document{"no list of items": none}
	for _, items := range []int{0, 1, 2, 99, 100, 101, 250} {
		documents[fmt.Sprint(items, " items")] = documentOf(items)
	}
	for name, document := range documents {
		for _, format := range []printer.Format{printer.JSON, printer.YAML} {
			var got, want bytes.Buffer
			if err := (printer.Printer{Out: &want, Format: format}).Value(document); err != nil {
				t.Fatal(err)
			}
			if err := plan.Encode(&got, document, format.String()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.String(), got.String()); diff != "" {
				t.Errorf("%s as %s (-whole +in pieces):\n%s", name, format, diff)
			}
		}
	}
}

// bounded fails on a write of more than its size: whoever encodes the whole document at once has it in memory.
type bounded int

func (b bounded) Write(text []byte) (int, error) {
	if len(text) > int(b) {
		return 0, errors.New("a write of the whole document")
	}
	return len(text), nil
}

func TestLargeDocumentIsNeverHeldAsOneText(t *testing.T) {
	document := documentOf(5_000) // 3 MB
	for _, format := range []string{"json", "yaml"} {
		if err := plan.Encode(bounded(200_000), document, format); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestWriteErrorOfEncodedPlanIsReturned(t *testing.T) {
	if err := plan.Encode(bounded(0), documentOf(1), "json"); err == nil {
		t.Error("a plan that could not be written is no error")
	}
}
