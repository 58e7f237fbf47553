package main

import (
	"strings"
	"testing"
	"time"
)

func TestAuditIntervalHasALowerLimit(t *testing.T) {
	for interval, accepted := range map[time.Duration]bool{
		0: true, 10 * time.Minute: true, 24 * time.Hour: true, 10*time.Minute - time.Second: false, -time.Hour: false,
	} {
		if err := (&auditOptions{interval: interval}).check(); (err == nil) != accepted {
			t.Errorf("--audit-interval=%s: %v", interval, err)
		}
	}
}

func TestAuditsNeedAllNodes(t *testing.T) {
	t.Setenv("NODE_NAME", "node")
	created, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	of, is := created.(*options)
	if !is {
		t.Fatalf("options are %T", created)
	}
	of.audit.interval, of.node.enabled = time.Hour, true
	if err := of.Complete(); err == nil || !strings.Contains(err.Error(),
		"--audit-interval and --node-deployment exclude each other") {
		t.Errorf("error = %v", err)
	}
}
