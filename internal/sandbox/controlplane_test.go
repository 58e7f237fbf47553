package sandbox

import (
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

func TestSeparateEtcdIsGivenToServer(t *testing.T) {
	plane := &ControlPlane{Etcd: &Process{ready: "unix:///etcd.sock"}}
	if !slices.Contains(plane.args(), "--etcd=unix:///etcd.sock") {
		t.Errorf("arguments %v", plane.args())
	}
}
