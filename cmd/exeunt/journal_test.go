package main

import (
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// An API server may accept a request and not answer.
func TestJournalRequestsAreBounded(t *testing.T) {
	kubeconfig := writeKubeconfig(t, "http://127.0.0.1:1")
	for given, want := range map[string]time.Duration{"0": time.Minute, "5s": 5 * time.Second} {
		flags := journalFlags{config: genericclioptions.NewConfigFlags(false)}
		flags.config.KubeConfig, flags.config.Timeout = &kubeconfig, &given
		config, err := flags.restConfig()
		if err != nil || config.Timeout != want {
			t.Errorf("--request-timeout=%s: %+v, %v", given, config, err)
		}
	}
}
