package alive_test

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func at(offset time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(offset))) }

// times are values of spec.confirmedAt and spec.timeout, and what is left of the permission.
var times = []struct {
	name        string
	confirmedAt *metav1.Time
	timeout     *metav1.Duration
	left        time.Duration
}{
	{"never", nil, nil, 0},
	{"zero", new(metav1.Time{}), nil, 0},
	{"now, by default", at(0), nil, time.Hour},
	{"ten minutes ago, by default", at(-10 * time.Minute), nil, 50 * time.Minute},
	{"an hour ago, by default", at(-time.Hour), nil, 0},
	{"an hour ago, for two", at(-time.Hour), &metav1.Duration{Duration: 2 * time.Hour}, time.Hour},
	{"in March", at(-60 * 24 * time.Hour), &metav1.Duration{Duration: 24 * time.Hour}, 0},
	{"a day ago, for ten days", at(-24 * time.Hour), &metav1.Duration{Duration: 240 * time.Hour}, 0},
	{"now, for nothing", at(0), &metav1.Duration{}, 0},
	{"now, for a negative time", at(0), &metav1.Duration{Duration: -time.Hour}, 0},
	{"five minutes ahead", at(5 * time.Minute), nil, 65 * time.Minute},
	{"more than five minutes ahead", at(5*time.Minute + time.Second), nil, 0},
	{"in ten years", at(10 * 365 * 24 * time.Hour), nil, 0},
}

func conditions(status metav1.ConditionStatus) []metav1.Condition {
	ready := metav1.Condition{Type: alive.ConditionReady, Status: metav1.ConditionTrue}
	if status == "" {
		return []metav1.Condition{ready}
	}
	return []metav1.Condition{ready, {Type: alive.ConditionStarted, Status: status}}
}

func TestCleanUpNeedsEveryPermission(t *testing.T) {
	permitted := 0
	for _, deleted := range []bool{false, true} {
		for _, protected := range []*bool{nil, new(true), new(false)} {
			for _, started := range []metav1.ConditionStatus{"", metav1.ConditionFalse, metav1.ConditionUnknown, metav1.ConditionTrue} {
				for _, time := range times {
					object := alive.New()
					object.Spec = alive.Spec{Protected: protected, ConfirmedAt: time.confirmedAt, Timeout: time.timeout}
					object.Status.Conditions = conditions(started)
					if deleted {
						object.DeletionTimestamp = at(0)
					}
					want := deleted && protected != nil && !*protected && started == metav1.ConditionTrue && time.left > 0
					if got := alive.CleanUp(object, now); got != want {
						t.Errorf("deleted %v, protected %v, started %q, confirmed %s: CleanUp is %v", deleted, protected,
							started, time.name, got)
					}
					if want {
						permitted++
					}
				}
			}
		}
	}
	if permitted != 4 {
		t.Errorf("%d states permit, want 4: the valid times", permitted)
	}
	if alive.CleanUp(nil, now) {
		t.Error("an absent Alive permits")
	}
}

func TestTimeLeft(t *testing.T) {
	for _, test := range times {
		t.Run(test.name, func(t *testing.T) {
			object := &alive.Alive{Spec: alive.Spec{ConfirmedAt: test.confirmedAt, Timeout: test.timeout}}
			if got := object.TimeLeft(now); got != test.left {
				t.Errorf("%s are left, want %s", got, test.left)
			}
		})
	}
	if got := (*alive.Alive)(nil).TimeLeft(now); got != 0 {
		t.Errorf("an absent Alive has %s left", got)
	}
}

// full returns an object with a value in every field.
func full() *alive.Alive {
	object := alive.New()
	object.UID, object.Annotations = "1", map[string]string{"a": "b"}
	object.Spec = alive.Spec{Protected: new(false), Confirm: "uid", ConfirmedAt: at(0), Timeout: &metav1.Duration{Duration: time.Hour},
		Last: []string{"db"}}
	object.Status = alive.Status{Phase: alive.TearingDown, Reason: "R", Message: "M", StartedAt: at(0), RemainingCount: 1,
		Remaining: []alive.Remaining{{Object: alive.Object{Kind: "PersistentVolume", Namespace: "n", Name: "pv", UID: "2"},
			ExternalID: "disk", Finalizer: "f", Holder: "h", Reason: "r", Verdict: "stuck", Since: at(0), Next: "next"}},
		Conditions: conditions(metav1.ConditionTrue)}
	return object
}

func TestConversionKeepsEveryField(t *testing.T) {
	for _, value := range []any{full().Spec, full().Status, full().Status.Remaining[0], full().Status.Remaining[0].Object} {
		for i := range reflect.TypeOf(value).NumField() {
			if reflect.ValueOf(value).Field(i).IsZero() {
				t.Errorf("full has no %T.%s", value, reflect.TypeOf(value).Field(i).Name)
			}
		}
	}
	content, err := alive.ToUnstructured(full())
	if err != nil {
		t.Fatal(err)
	}
	back, err := alive.FromUnstructured(content)
	if err != nil {
		t.Fatal(err)
	}
	want := full()
	for _, time := range []*metav1.Time{back.Spec.ConfirmedAt, back.Status.StartedAt, back.Status.Remaining[0].Since} {
		*time = metav1.NewTime(time.UTC())
	}
	if !reflect.DeepEqual(back, want) {
		t.Errorf("converted: %+v, want %+v", back, want)
	}
}

func TestObjectOfUnknownMeaningIsAnError(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"another version":      func(o map[string]any) { o["apiVersion"] = "lifecycle.exeunt.io/v1" },
		"another kind":         func(o map[string]any) { o["kind"] = "Dead" },
		"no spec":              func(o map[string]any) { delete(o, "spec") },
		"no protected":         func(o map[string]any) { o["spec"] = map[string]any{} },
		"protected is null":    func(o map[string]any) { o["spec"] = map[string]any{"protected": nil} },
		"protected is a text":  func(o map[string]any) { o["spec"] = map[string]any{"protected": "false"} },
		"timeout is no time":   func(o map[string]any) { o["spec"].(map[string]any)["timeout"] = "soon" },
		"confirmedAt is false": func(o map[string]any) { o["spec"].(map[string]any)["confirmedAt"] = "yesterday" },
	} {
		t.Run(name, func(t *testing.T) {
			content, err := alive.ToUnstructured(full())
			if err != nil {
				t.Fatal(err)
			}
			change(content.Object)
			if object, err := alive.FromUnstructured(content); err == nil {
				t.Errorf("read as %+v", object.Spec)
			}
		})
	}
	if _, err := alive.FromUnstructured(&unstructured.Unstructured{}); err == nil {
		t.Error("an empty object is read")
	}
}

// scramble changes everything that is reached through pointers, slices and maps.
func scramble(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			value.Elem().SetZero()
		}
	case reflect.Slice:
		for i := range value.Len() {
			scramble(value.Index(i))
			value.Index(i).SetZero()
		}
	case reflect.Map:
		value.Clear()
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				scramble(value.Field(i))
			}
		}
	default: // has no memory of its own
	}
}

func TestCopySharesNoMemory(t *testing.T) {
	object := full()
	copied := object.DeepCopyObject().(*alive.Alive)
	if !reflect.DeepEqual(copied, full()) {
		t.Errorf("copy: %+v", copied)
	}
	scramble(reflect.ValueOf(copied).Elem())
	if !reflect.DeepEqual(object, full()) {
		t.Errorf("after a change of the copy: %+v", object)
	}
	list := &alive.List{Items: []alive.Alive{*full()}}
	scramble(reflect.ValueOf(list.DeepCopyObject().(*alive.List)).Elem())
	if !reflect.DeepEqual(list.Items[0], *full()) {
		t.Errorf("after a change of the copied list: %+v", list.Items[0])
	}
	if (*alive.Alive)(nil).DeepCopy() != nil || (*alive.List)(nil).DeepCopy() != nil {
		t.Error("the copy of nothing is something")
	}
}

func TestSchemeKnowsTheKind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := alive.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Alive", "AliveList"} {
		if _, err := scheme.New(alive.GroupVersion.WithKind(kind)); err != nil {
			t.Error(err)
		}
	}
}

func TestNewAliveIsProtectedAndNotPermitted(t *testing.T) {
	object := alive.New()
	if !object.IsProtected() || object.IsDeleted() || object.IsStarted() || object.TimeLeft(now) != 0 {
		t.Errorf("new Alive: %+v", object)
	}
}
