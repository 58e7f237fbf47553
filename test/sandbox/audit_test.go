package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// auditLines are two lines as kube-apiserver writes them: a request for an
// object's subresource and one for no resource.
const auditLines = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete","requestURI":"/api/v1/persistentvolumes/pv/status","verb":"update","user":{"username":"system:serviceaccount:exeunt-system:pv-controller","groups":["system:serviceaccounts"]},"sourceIPs":["127.0.0.1"],"userAgent":"pv-controller/v0.1.0","objectRef":{"resource":"persistentvolumes","name":"pv","apiVersion":"v1","subresource":"status"},"responseStatus":{"metadata":{},"code":409},"requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z","stageTimestamp":"2026-01-02T03:04:05.250000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"2","stage":"ResponseComplete","requestURI":"/readyz","verb":"get","user":{"username":"kubernetes-admin"},"userAgent":"curl","responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:06.000000Z","stageTimestamp":"2026-01-02T03:04:06.000000Z"}
`

func TestReadAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	appendText(t, path, auditLines)
	got, err := ReadAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{{
		Time:        time.Date(2026, 1, 2, 3, 4, 5, 250e6, time.UTC),
		Duration:    250 * time.Millisecond,
		User:        PVControllerAccount.Name(),
		UserAgent:   "pv-controller/v0.1.0",
		Verb:        "update",
		Resource:    "persistentvolumes",
		Subresource: "status",
		Name:        "pv",
		Code:        409,
	}, {
		Time:      time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
		User:      "kubernetes-admin",
		UserAgent: "curl",
		Verb:      "get",
		Code:      200,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadAudit (-want +got):\n%s", diff)
	}
}

// A killed API server leaves a line unfinished, and the next one appends to the file.
func TestLineOfAKilledServerIsLeftOut(t *testing.T) {
	first, second, _ := strings.Cut(auditLines, "\n")
	for _, length := range []int{1, 10, len(first) / 2, len(first) - 1} {
		path := filepath.Join(t.TempDir(), "audit.log")
		appendText(t, path, first+"\n"+first[:length]+second)
		got, err := ReadAudit(path)
		if err != nil || len(got) != 2 || got[1].UserAgent != "curl" {
			t.Errorf("%d bytes of the line: ReadAudit = %+v, %v", length, got, err)
		}
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	appendText(t, path, first[:len(first)/2]+"\n")
	if got, err := ReadAudit(path); err == nil {
		t.Errorf("ReadAudit = %+v of a line that nothing explains, want an error", got)
	}
}

func TestWriteHasTheObjectThatItReturned(t *testing.T) {
	const line = `{"level":"RequestResponse","verb":"patch","objectRef":{"resource":"persistentvolumes","name":"pv"},"responseObject":%s}` + "\n"
	for name, tc := range map[string]struct{ response, want string }{
		"an object":  {`{"kind":"PersistentVolume","metadata":{"name":"pv","resourceVersion":"7"}}`, "pv"},
		"a refusal":  {`{"kind":"Status","code":409}`, ""},
		"no content": {`null`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			appendText(t, path, fmt.Sprintf(line, tc.response))
			events, err := ReadAudit(path)
			if err != nil || len(events) != 1 {
				t.Fatalf("ReadAudit = %v, %v, want one event", events, err)
			}
			got := ""
			if object := events[0].Object; object != nil {
				got = object.GetName()
			}
			if got != tc.want {
				t.Errorf("object %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRefusedNamesOnlyMissingRights(t *testing.T) {
	const line = `{"verb":"create","user":{"username":"system:serviceaccount:exeunt-system:provisioner"},"objectRef":{"resource":"events"},` +
		`"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":%q},` +
		`"requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z","stageTimestamp":"2026-01-02T03:04:05.250000Z"}` + "\n"
	for decision, refused := range map[string]bool{"allow": false, "forbid": true} {
		path := filepath.Join(t.TempDir(), "audit.log")
		appendText(t, path, fmt.Sprintf(line, decision))
		if err := Refused(path, "system:serviceaccount:exeunt-system"); (err != nil) != refused {
			t.Errorf("decision %s: Refused = %v", decision, err)
		}
	}
}

func TestWrites(t *testing.T) {
	for verb, want := range map[string]bool{
		"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true,
		"get": false, "list": false, "watch": false,
	} {
		if got := (Event{Verb: verb}).Writes(); got != want {
			t.Errorf("%s writes: %t, want %t", verb, got, want)
		}
	}
}

func TestFollowCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	appendText(t, path, `{"seq":3,"time":"2026-01-02T03:04:05Z","method":"CreateVolume","volume":"v1","name":"pvc-1","code":"OK","volumes":1,"duration_ms":7}`+"\n")
	for call, err := range FollowCalls(patient(t), path) {
		if err != nil || call.Seq != 3 || call.Method != "CreateVolume" || call.Volume != "v1" || call.DurationMS != 7 {
			t.Errorf("call = %+v, %v", call, err)
		}
		return
	}
	t.Error("no call came")
}
