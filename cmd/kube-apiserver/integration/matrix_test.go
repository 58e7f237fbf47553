package integration

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// row is a row of the scenario matrix of KEP-5673: an object, a request, and two columns with what shall come of it.
type row struct {
	deleting bool // with 300 s
	held     bool
	grace    any
	// returns is the column "CheckGracefulDelete Return": the grace period of the request is in force.
	returns bool
	// kep is the column "GracePeriodSeconds Set", and want what ours says: -1 if the object is gone. Where the KEP says
	// N/A for an object that stays, ours has the 0 of a stock API server, or the grace period that runs.
	kep  string
	want int64
	kind deadline.Kind
}

// matrix begins with row 1.
var matrix = []row{
	{false, true, "", false, "N/A", 0, deadline.Unspecified},
	{false, true, 0, true, "0", 0, deadline.Forced},
	{false, true, 300, true, "300", 300, deadline.Graceful},
	{false, false, "", false, "N/A", -1, 0},
	{false, false, 0, false, "N/A", -1, 0},
	{false, false, 300, false, "N/A", -1, 0},
	{true, true, "", false, "N/A", 300, deadline.Graceful},
	{true, true, 0, true, "0", 0, deadline.Forced},
	{true, true, 60, true, "60", 60, deadline.Graceful},
	{true, false, "", false, "N/A", -1, 0},
	{true, false, 0, false, "N/A", -1, 0},
	{true, false, 60, false, "N/A", -1, 0},
}

func TestScenarioMatrixOfTheKEP(t *testing.T) {
	lines := []string{"KEP-5673 on " + linked(t)[kubernetes], "",
		"| # | deletionTimestamp | finalizers | gracePeriodSeconds | Return: KEP | observed | Set: KEP | observed |",
		"|---|---|---|---|---|---|---|---|"}
	k := newKind(t, ours(t), "matrix.example.com")
	for i, row := range matrix {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			got, seconds := k.in(t).observe(fmt.Sprintf("row-%d", i+1), row)
			lines = append(lines, fmt.Sprintf("| %d | %s | %s | %v | %t | %t | %s | %s |", i+1,
				words(row.deleting, "set", "nil"), words(row.held, "yes", "no"), cmp.Or(fmt.Sprint(row.grace), "nil"),
				row.returns, got, row.kep, words(seconds >= 0, fmt.Sprint(seconds), "gone")))
			if got != row.returns || seconds != row.want {
				t.Errorf("returns %t, %d seconds; want %t, %d", got, seconds, row.returns, row.want)
			}
		})
	}
	table := strings.Join(lines, "\n") + "\n"
	t.Log("\n" + table)
	if file := os.Getenv("EXEUNT_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
			t.Error(err)
		}
	}
}

func words(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// observe makes the object of a row and sends the request. It returns whether the grace period of the request is in
// force, which the metric says, and deletionGracePeriodSeconds, -1 if the object is gone.
func (k kind) observe(name string, row row) (inForce bool, seconds int64) {
	k.t.Helper()
	if row.deleting || row.held {
		k.create(name, finalizer)
	} else {
		k.create(name)
	}
	if row.deleting {
		k.graceful(name, 300)
	}
	if row.deleting && !row.held { // a removal of its finalizer would remove the object at once: only etcd can have it
		k.rewrite(name, func(object *unstructured.Unstructured) { object.SetFinalizers(nil) })
	}
	before := k.inForce()
	got := k.delete(name, row.grace, nil)
	if got.code != http.StatusOK {
		k.t.Fatalf("%d %s", got.code, got.text)
	}
	inForce = k.inForce() != before
	if row.want < 0 {
		k.gone(name)
		return inForce, -1
	}
	found := deletionOf(got.body)
	if found.kind != row.kind {
		k.t.Errorf("%+v, want %v", found, row.kind)
	}
	k.expect(got, name, found)
	return inForce, found.field
}

// inForce returns the counts of requests whose grace period came into force.
func (k kind) inForce() string {
	k.t.Helper()
	counts := slices.DeleteFunc(strings.Split(k.metrics(), ", "), func(count string) bool {
		return strings.HasPrefix(count, "refused ")
	})
	return strings.Join(counts, ", ")
}
