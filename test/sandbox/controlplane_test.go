package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAuditLogCanBeTurnedOff(t *testing.T) {
	for _, off := range []bool{false, true} {
		plane := &ControlPlane{AuditLog: "audit.log", config: Config{NoAuditLog: off}}
		if logs := slices.Contains(plane.args(), "--audit-log=audit.log"); logs == off {
			t.Errorf("NoAuditLog %t: arguments %v", off, plane.args())
		}
	}
}

func TestAuditPolicyOfObjectsIsWritten(t *testing.T) {
	given := Config{Dir: t.TempDir(), ExtraArgs: []string{"v=1"}}
	config := given
	if err := writeAuditPolicy(&config); err != nil {
		t.Fatal(err)
	}
	plane := &ControlPlane{config: config}
	file := filepath.Join(config.Dir, "audit-objects.yaml")
	if !slices.Contains(plane.args(), "--extra-arg=audit-policy-file="+file) ||
		!slices.Contains(plane.args(), "--extra-arg=v=1") {
		t.Errorf("arguments %v", plane.args())
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != auditPolicy {
		t.Errorf("policy %q, %v", text, err)
	}
	if len(given.ExtraArgs) != 1 {
		t.Errorf("the arguments of the caller are changed: %v", given.ExtraArgs)
	}
}

func TestSeparateEtcdIsGivenToServer(t *testing.T) {
	plane := &ControlPlane{Etcd: &Process{ready: "unix:///etcd.sock"}}
	if !slices.Contains(plane.args(), "--etcd=unix:///etcd.sock") {
		t.Errorf("arguments %v", plane.args())
	}
}
